import { createActivities } from "../../activities";
import { pipelineWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { artifactOf, manifestErrors } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import {
  BYO_DATA,
  type Pipeline,
  readPipeline,
  startPipeline,
  statusesOf,
  stepOf,
  URI,
  untilPipeline,
  usualWork,
  WorkerPool,
} from "../support/pipelines";

let forge: Forge;
let crew: WorkerPool;

beforeAll(async () => {
  forge = await startForge();
  crew = await new WorkerPool(forge).start(3);
});

afterEach(() => {
  crew.work = usualWork;
});

afterAll(async () => {
  try {
    await crew?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
  }
});

/** The types of a pipeline's jobs, in the order of their creation. */
const dispatchedTypes = async (id: string): Promise<string[]> => {
  const rows = await all<{ job_type: string }>(
    forge.ctx.pool,
    "select job_type from jobs where pipeline_id = $1 order by created_at",
    [id],
  );
  return rows.map((row) => row.job_type);
};

test("byo-data runs to a deployment, each step with the output of the one before", async () => {
  const created = await forge.user.post<Pipeline>("/api/pipelines", { ...BYO_DATA, name: "first" });
  expect(created).toMatchObject({ status: "running", run: 1, name: "first", template: "byo-data" });
  expect(created.steps.map(({ name }) => name)).toEqual([
    "audit",
    "distill",
    "train",
    "evaluate",
    "deploy",
  ]);
  const done = await untilPipeline(forge.user, created.pipeline_id);
  expect(done).toMatchObject({ status: "completed", error: null });
  expect(new Set(Object.values(statusesOf(done)))).toEqual(new Set(["completed"]));
  const results = await Promise.all(done.steps.map(({ job_id }) => forge.user.job(job_id ?? "")));
  const [audit, distill, train, evaluate, deploy] = results as unknown as {
    payload: Record<string, unknown>;
    result: Record<string, unknown>;
    pipeline_id: string;
    pipeline_step: string;
  }[];
  expect(audit?.payload).toEqual({ dataset_uri: URI });
  expect(distill?.payload).toEqual({ dataset_id: audit?.result.dataset_id, teacher: "t" });
  expect(train?.payload).toMatchObject({ dataset_id: distill?.result.distilled_dataset_id });
  expect(evaluate?.payload).toEqual({ checkpoint_id: train?.result.checkpoint_id });
  expect(deploy?.payload).toEqual({ checkpoint_id: train?.result.checkpoint_id });
  expect(deploy).toMatchObject({ pipeline_id: created.pipeline_id, pipeline_step: "deploy" });
  // In USD: 0.20 for 1,000 audited rows, 0.30 for a million tokens, 1.25 for an hour of an A100,
  // and 0.10 for 100 evaluated samples.
  expect(done.steps.slice(0, 4).map(({ cost_usd }) => cost_usd)).toEqual([0.2, 0.3, 1.25, 0.1]);
  expect(done.cost_usd).toBeCloseTo(1.85, 6);
  const listed = await forge.user.get<{ jobs: unknown[] }>(
    `/api/jobs?pipeline_id=${created.pipeline_id}`,
  );
  expect(listed.jobs).toHaveLength(5);
});

test("synthetic runs without the skipped steps, and its forecast uses recent durations", async () => {
  const id = await startPipeline(forge.user, {
    template: "synthetic",
    params: { generate: { domain: "law", num_samples: 10 }, train: { model_id: "m" } },
    skip: ["audit", "distill"],
  });
  const done = await untilPipeline(forge.user, id);
  expect(done.status).toBe("completed");
  expect(await dispatchedTypes(id)).toEqual(["generate", "train", "evaluate", "deploy"]);
  crew.work = () => ({ error: "no" });
  const next = await forge.user.post<Pipeline>("/api/pipelines", {
    ...BYO_DATA,
    skip: ["audit"],
    params: {
      distill: { dataset_uri: URI, teacher: "t" },
      train: { model: "m" },
    },
  });
  expect(next.expected_remaining_s).toEqual(expect.any(Number));
  expect(next.estimated_cost_usd).toBeCloseTo(1.65, 6);
  await untilPipeline(forge.user, next.pipeline_id);
});

test("steps of a DAG run in parallel if they can, and references reach params and payloads", async () => {
  const id = await startPipeline(forge.user, {
    steps: [
      {
        name: "judge",
        job_type: "evaluate",
        payload: { model_id: "${steps.train.result.checkpoint_id}" },
        params: { judge: "${steps.serve.result.deployment_id}" },
      },
      { name: "train", job_type: "train", payload: { dataset_uri: URI, model: "m" } },
      { name: "serve", job_type: "deploy", payload: { checkpoint_id: "ckpt-old" }, tags: ["x"] },
      { name: "after", job_type: "audit", payload: { dataset_uri: URI }, needs: ["judge"] },
    ],
    tags: ["nightly"],
  });
  const done = await untilPipeline(forge.user, id);
  expect(done.status).toBe("completed");
  expect(done.steps.map(({ name }) => name)).toEqual(["train", "serve", "judge", "after"]);
  const jobs = await Promise.all(
    done.steps.map(async ({ name, job_id }) => {
      const job = await forge.user.get<{ result: Record<string, unknown>; tags: string[] }>(
        `/api/jobs/${job_id}`,
      );
      return [name, job] as const;
    }),
  );
  const { train, serve, judge } = Object.fromEntries(jobs);
  expect(judge).toMatchObject({
    payload: { checkpoint_id: train?.result.checkpoint_id },
    params: { judge: serve?.result.deployment_id },
  });
  expect(serve?.tags).toEqual(["nightly", "x"]);
});

test("a failed gate fails the pipeline with its numbers; another gate lets it continue without running the step again", async () => {
  const gates = [
    { step: "evaluate", condition: "scores.overall >= 0.95 && metrics.samples_evaluated > 1" },
  ];
  const id = await startPipeline(forge.user, { ...BYO_DATA, gates });
  const failed = await untilPipeline(forge.user, id);
  expect(failed).toMatchObject({ status: "failed", error_code: "gate_failed" });
  expect(failed.error).toMatch(/evaluate.*scores\.overall is 0\.9/);
  expect(stepOf(failed, "evaluate").gate).toEqual({
    condition: gates[0]?.condition,
    passed: false,
    values: { "scores.overall": 0.9, "metrics.samples_evaluated": 100 },
  });
  expect(stepOf(failed, "deploy")).toMatchObject({ status: "skipped", job_id: null });

  const resumed = await forge.user.call<Pipeline>("POST", `/api/pipelines/${id}/resume`, {
    gates: [{ step: "evaluate", condition: "scores.overall >= 0.9" }],
  });
  expect(resumed).toMatchObject({ status: 202, body: { status: "running", run: 2 } });
  const done = await untilPipeline(forge.user, id);
  expect(done.status).toBe("completed");
  expect(await dispatchedTypes(id)).toEqual(["audit", "distill", "train", "evaluate", "deploy"]);
  expect(stepOf(done, "evaluate").job_id).toBe(stepOf(failed, "evaluate").job_id);
});

test("a new gate for a completed step is evaluated, although the step does not run again", async () => {
  crew.work = (job) => (job.job_type === "deploy" ? { error: "out of luck" } : usualWork(job));
  const id = await startPipeline(forge.user, BYO_DATA);
  const before = stepOf(await untilPipeline(forge.user, id), "evaluate");
  crew.work = usualWork;
  const judge = async (condition: string, from?: string): Promise<Pipeline> => {
    const gates = [{ step: "evaluate", condition }];
    await forge.user.post(`/api/pipelines/${id}/resume`, { gates, from });
    return await untilPipeline(forge.user, id);
  };
  const failed = await judge("scores.overall > 0.95");
  expect(failed).toMatchObject({ status: "failed", error_code: "gate_failed" });
  expect(stepOf(failed, "deploy")).toMatchObject({ status: "skipped", job_id: null });
  const done = await judge("scores.overall >= 0.9");
  expect(done.status).toBe("completed");
  const again = await judge("scores.overall >= 0.5", "deploy");
  expect(again.status).toBe("completed");
  expect(stepOf(again, "evaluate")).toMatchObject({
    job_id: before.job_id,
    gate: { condition: "scores.overall >= 0.5", passed: true, values: { "scores.overall": 0.9 } },
  });
});

test.each([false, true])(
  "a new gate that does not pass resets the steps after it only if it is optional (%s)",
  async (optional) => {
    crew.work = (job) => (job.job_type === "distill" ? { error: "out of luck" } : usualWork(job));
    const audit = { job_type: "audit", payload: { dataset_uri: URI }, optional };
    const last = { job_type: "distill", payload: { dataset_uri: URI, teacher: "t" } };
    const steps = [
      { ...audit, name: "a" },
      { ...audit, name: "b", needs: ["a"] },
      { ...last, name: "c", needs: ["b"] },
    ];
    const id = await startPipeline(forge.user, { steps });
    const first = await untilPipeline(forge.user, id);
    expect(statusesOf(first)).toEqual({ a: "completed", b: "completed", c: "failed" });
    crew.work = usualWork;
    const judge = async (above: number): Promise<Pipeline> => {
      const condition = `quality.clarity_mean > ${above}`;
      const gates = [
        { step: "a", condition },
        { step: "b", condition: "quality.clarity_mean > 0.7" },
      ];
      await forge.user.post(`/api/pipelines/${id}/resume`, { gates });
      return await untilPipeline(forge.user, id);
    };
    const failed = await judge(0.9);
    const kept = optional ? "skipped" : "completed";
    expect(statusesOf(failed)).toEqual({ a: "failed", b: kept, c: "skipped" });
    expect(stepOf(failed, "a").error_code).toBe("gate_failed");
    const done = await judge(0.7);
    expect(statusesOf(done)).toEqual({ a: "completed", b: "completed", c: "completed" });
    expect(stepOf(done, "a").job_id).toBe(stepOf(first, "a").job_id);
    expect(stepOf(done, "b").job_id === stepOf(first, "b").job_id).toBe(!optional);
  },
);

test("a gate without its number fails, and says so", async () => {
  crew.work = (job) => (job.job_type === "audit" ? { result: {} } : usualWork(job));
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    gates: [{ step: "audit", condition: "quality.clarity_mean >= 0.6" }],
  });
  const failed = await untilPipeline(forge.user, id);
  expect(failed.error).toMatch(/there is no quality\.clarity_mean in its result/);
});

test("a step waits for an approval, which is given once and shows by whom", async () => {
  const id = await startPipeline(forge.user, { ...BYO_DATA, approvals: ["train", "deploy"] });
  const waiting = await untilPipeline(forge.user, id, ["waiting_approval"]);
  expect(statusesOf(waiting)).toMatchObject({ distill: "completed", train: "waiting_approval" });
  // The input of the waiting step can't be deleted.
  const { artifact_id } = await artifactOf(forge.user, stepOf(waiting, "distill").job_id ?? "");
  const kept = await forge.user.call("DELETE", `/api/artifacts/${artifact_id}`);
  expect(kept).toMatchObject({
    status: 409,
    body: {
      error: {
        code: "artifact_in_use",
        details: { dependents: expect.arrayContaining([{ type: "pipeline", id }]) },
      },
    },
  });
  const approve = (body?: unknown) =>
    forge.user.call<Pipeline & { error: { code: string } }>(
      "POST",
      `/api/pipelines/${id}/approve`,
      body,
    );
  expect((await approve({ step: "deploy" })).body.error.code).toBe("step_not_waiting");
  expect((await approve({ step: "trian" })).status).toBe(400);
  const answers = await Promise.all([1, 2, 3].map(() => approve({ step: "train", note: "go" })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  await untilPipeline(forge.user, id, ["waiting_approval"]).then((pipeline) =>
    expect(stepOf(pipeline, "train").approval).toMatchObject({
      approved: true,
      by: expect.any(String),
      at: expect.any(String),
      note: "go",
    }),
  );
  await waitFor(
    "deploy to wait",
    async () => stepOf(await readPipeline(forge.user, id), "deploy").status === "waiting_approval",
  );
  // Approve through Temporal, as an operator may.
  const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
  await expect(
    handle.executeUpdate("approve", { args: [{ step: "audit", by: "ops" }] }),
  ).rejects.toThrow();
  await handle.executeUpdate("approve", { args: [{ by: "ops" }] });
  const done = await untilPipeline(forge.user, id);
  expect(done.status).toBe("completed");
  expect(stepOf(done, "deploy").approval).toMatchObject({ by: "temporal:ops" });
  expect((await approve()).body.error.code).toBe("no_step_waiting");
});

test("a rejected step fails the pipeline, and a resume asks for approval again", async () => {
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    skip: ["evaluate", "deploy"],
    approvals: ["train"],
  });
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  await forge.user.post(`/api/pipelines/${id}/approve`, { approved: false, note: "too dear" });
  const failed = await untilPipeline(forge.user, id);
  expect(failed).toMatchObject({ status: "failed", error_code: "approval_rejected" });
  expect(failed.error).toMatch(/rejected by .*: too dear/);
  await forge.user.post(`/api/pipelines/${id}/resume`, {});
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  await forge.user.post(`/api/pipelines/${id}/approve`, {});
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  expect(await dispatchedTypes(id)).toEqual(["audit", "distill", "train"]);
});

test("a resume from a failed step keeps everything before it", async () => {
  crew.work = (job) => (job.job_type === "train" ? { error: "out of luck" } : usualWork(job));
  const id = await startPipeline(forge.user, BYO_DATA);
  const failed = await untilPipeline(forge.user, id);
  expect(failed).toMatchObject({ status: "failed", error_code: "step_failed" });
  expect(failed.error).toBe('step "train": out of luck');
  expect(statusesOf(failed)).toMatchObject({ distill: "completed", evaluate: "skipped" });
  crew.work = usualWork;
  await forge.user.post(`/api/pipelines/${id}/resume`, {});
  const again = await forge.user.call("POST", `/api/pipelines/${id}/resume`, {});
  expect([again.status]).toEqual([409]);
  const done = await untilPipeline(forge.user, id);
  expect(done).toMatchObject({ status: "completed", run: 2, error: null });
  expect(await dispatchedTypes(id)).toEqual([
    "audit",
    "distill",
    "train",
    "train",
    "evaluate",
    "deploy",
  ]);
  const refused = await forge.user.call<{ error: { code: string } }>(
    "POST",
    `/api/pipelines/${id}/resume`,
    {},
  );
  expect(refused.body.error.code).toBe("pipeline_completed");
});

test("a completed pipeline runs again from a given step", async () => {
  const id = await startPipeline(forge.user, BYO_DATA);
  const first = await untilPipeline(forge.user, id);
  const resumed = await forge.user.post<Pipeline>(`/api/pipelines/${id}/resume`, { from: "train" });
  expect(statusesOf(resumed)).toMatchObject({
    distill: "completed",
    train: "pending",
    deploy: "pending",
  });
  const second = await untilPipeline(forge.user, id);
  expect(second).toMatchObject({ status: "completed", run: 2 });
  const same = second.steps.filter(({ job_id }, at) => job_id === first.steps[at]?.job_id);
  expect(same.map(({ name }) => name)).toEqual(["audit", "distill"]);
  expect(second.cost_usd).toBeGreaterThan(first.cost_usd);
});

test("a cancel ends the running job, and no step begins after it", async () => {
  const idle = await forge.worker("slow-one", { name: "NVIDIA H100", memory_gb: 80 });
  idle.startHeartbeats();
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    params: {
      ...BYO_DATA.params,
      train: { model: "m", resources: { gpu_type: "H100" }, timeout_s: 60 },
    },
  });
  const job = await idle.take();
  const answer = await forge.user.call("POST", `/api/pipelines/${id}/cancel`, {});
  expect(answer.status).toBe(202);
  const { commands } = await idle.heartbeat();
  expect(commands).toContainEqual({ type: "cancel_job", job_id: job.job_id });
  await idle.fail(job);
  const over = await untilPipeline(forge.user, id);
  expect(over.status).toBe("cancelled");
  expect(statusesOf(over)).toEqual({
    audit: "completed",
    distill: "completed",
    train: "cancelled",
    evaluate: "cancelled",
    deploy: "cancelled",
  });
  // A second cancel is no error, and the pipeline can be resumed.
  expect((await forge.user.call("POST", `/api/pipelines/${id}/cancel`)).status).toBe(202);
  await forge.user.post(`/api/pipelines/${id}/resume`, {});
  await idle.complete(await idle.take());
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  idle.stopHeartbeats();
});

test("a cancel in Temporal's UI cancels the pipeline", async () => {
  const id = await startPipeline(forge.user, { ...BYO_DATA, approvals: ["audit"] });
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  const workflow = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
  await workflow.cancel();
  expect((await untilPipeline(forge.user, id)).status).toBe("cancelled");
  // A wake signal may arrive while the workflow writes its end. Temporal then repeats the workflow
  // task, and the workflow must still close.
  await waitFor("its workflow to close", async () => {
    return (await workflow.describe()).status.name !== "RUNNING";
  });
});

test("the best of a sweep is deployed, and a failed one is left out", async () => {
  crew.work = (job) => {
    const usual = usualWork(job);
    const lr = (job as unknown as { params: { lr?: number } }).params.lr;
    if (job.job_type === "train" && lr === 0.3) return { error: "diverged" };
    if (job.job_type !== "evaluate") return usual;
    const trained = crew.dispatched.find(
      ({ output_ids }) => output_ids.checkpoint_id === job.payload.checkpoint_id,
    ) as unknown as { params: { lr: number } };
    return { ...usual, result: { scores: { overall: 0.5 + trained.params.lr } } };
  };
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    sweep: [0.1, 0.2, 0.3, 0.15].map((lr) => ({ params: { lr } })),
    gates: [{ step: "evaluate", condition: "scores.overall >= 0.65" }],
  });
  const done = await untilPipeline(forge.user, id);
  expect(done.status).toBe("completed");
  expect(statusesOf(done)).toMatchObject({ "train-3": "failed", "evaluate-3": "skipped" });
  expect(stepOf(done, "deploy").chosen).toEqual({
    step: "evaluate-2",
    by: "scores.overall",
    value: 0.7,
  });
  const best = await forge.user.job(stepOf(done, "train-2").job_id ?? "");
  const deployed = await forge.user.get<{ payload: unknown }>(
    `/api/jobs/${stepOf(done, "deploy").job_id}`,
  );
  expect(deployed.payload).toEqual({ checkpoint_id: best.result?.checkpoint_id });
});

test("if no candidate passes, the error has the numbers of all", async () => {
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    sweep: [{ epochs: 1 }, { epochs: 2 }],
    gates: [{ step: "evaluate", condition: "scores.overall >= 0.99" }],
  });
  const failed = await untilPipeline(forge.user, id);
  expect(failed).toMatchObject({ status: "failed", error_code: "nothing_to_choose" });
  expect(failed.error).toMatch(/evaluate-1: .*0\.9.*evaluate-2: .*0\.9/);
});

test("steps that begin together share the budget", async () => {
  const step = (n: number) => ({
    name: `a${n}`,
    job_type: "audit",
    payload: { dataset_uri: URI },
  });
  // In the earlier tests, each audit cost 0.20 USD, so the budget is enough for three audits.
  const body = { steps: [1, 2, 3, 4, 5, 6].map(step), budget_usd: 0.7 };
  const failed = await untilPipeline(forge.user, await startPipeline(forge.user, body));
  expect(failed).toMatchObject({ status: "failed", error_code: "budget_exhausted" });
  expect(failed.cost_usd).toBeLessThanOrEqual(0.7);
  expect(failed.steps.filter(({ status }) => status === "completed").length).toBeLessThanOrEqual(3);
});

test("an optional step that was skipped or has failed does not block a resume", async () => {
  const steps = [
    { name: "a", job_type: "audit", payload: { dataset_uri: URI } },
    { name: "law", job_type: "audit", payload: { dataset_uri: URI }, needs: ["a"], optional: true },
    { name: "main", job_type: "audit", payload: { dataset_uri: URI }, needs: ["a"] },
  ];
  const id = await startPipeline(forge.user, {
    steps,
    gates: [{ step: "a", condition: "quality.clarity_mean > 0.9" }],
  });
  const failed = await untilPipeline(forge.user, id);
  expect(statusesOf(failed)).toEqual({ a: "failed", law: "skipped", main: "skipped" });
  await forge.user.post(`/api/pipelines/${id}/resume`, {
    gates: [{ step: "a", condition: "quality.clarity_mean > 0.7" }],
  });
  const done = await untilPipeline(forge.user, id);
  expect(statusesOf(done)).toEqual({ a: "completed", law: "completed", main: "completed" });

  // A failed optional step lets the pipeline complete; the steps that depend on it are skipped.
  crew.work = (job) => (job.payload.checkpoint_id === "bad" ? { error: "no" } : usualWork(job));
  const other = await startPipeline(forge.user, {
    steps: [
      { name: "try", job_type: "evaluate", payload: { checkpoint_id: "bad" }, optional: true },
      {
        name: "after",
        job_type: "audit",
        payload: { dataset_uri: URI },
        needs: ["try"],
        optional: true,
      },
      { name: "main", job_type: "audit", payload: { dataset_uri: URI } },
    ],
  });
  const partly = await untilPipeline(forge.user, other);
  expect([partly.status, statusesOf(partly)]).toEqual([
    "completed",
    { try: "failed", after: "skipped", main: "completed" },
  ]);
});

test("a sweep without a passing candidate is resumed with a lower threshold, and trains nothing again", async () => {
  const id = await startPipeline(forge.user, {
    ...BYO_DATA,
    sweep: [{ epochs: 1 }, { epochs: 2 }],
    gates: [{ step: "evaluate", condition: "scores.overall > 0.95" }],
  });
  expect((await untilPipeline(forge.user, id)).error_code).toBe("nothing_to_choose");
  const before = await dispatchedTypes(id);
  const gate = { step: "evaluate", condition: "scores.overall > 0.8" };
  for (const [body, param] of [
    [{ gates: [gate, gate] }, "gates.1"],
    [{ from: "evaluate" }, "from"],
  ] as const) {
    const refused = await forge.user.call("POST", `/api/pipelines/${id}/resume`, body);
    expect(refused).toMatchObject({ status: 400, body: { error: { param } } });
  }
  await forge.user.post(`/api/pipelines/${id}/resume`, { gates: [gate] });
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  expect(await dispatchedTypes(id)).toEqual([...before, "deploy"]);
});

test("steps may be named like properties of every object", async () => {
  const names = ["constructor", "toString", "hasOwnProperty"];
  const steps = names.map((name) => ({ name, job_type: "audit", payload: { dataset_uri: URI } }));
  const id = await startPipeline(forge.user, { steps, approvals: names });
  await waitFor("all to wait", async () =>
    (await readPipeline(forge.user, id)).steps.every(({ status }) => status === "waiting_approval"),
  );
  for (const step of names) await forge.user.post(`/api/pipelines/${id}/approve`, { step });
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
});

test("a late decision for an earlier run changes nothing in the next one", async () => {
  crew.work = (job) => (job.job_type === "distill" ? { error: "no" } : usualWork(job));
  const id = await startPipeline(forge.user, BYO_DATA);
  await untilPipeline(forge.user, id);
  await crew.stop();
  await forge.user.post(`/api/pipelines/${id}/resume`, {});
  const activities = createActivities(forge.ctx);
  const late = { pipelineId: id, requestId: "r", run: 1 };
  const step = { ...late, step: "distill" };
  expect(await activities.endStep(step)).toBe("superseded");
  expect(await activities.beginStep(step)).toEqual({ how: "ended", end: "superseded" });
  expect(await activities.askApproval(step)).toBe(false);
  expect(await activities.closePipeline(late)).toEqual({ status: "superseded" });
  expect(await readPipeline(forge.user, id)).toMatchObject({ status: "running", run: 2 });
  crew = await new WorkerPool(forge).start(3, "after-late");
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
});

test("the size of referenced values is limited, with an error", async () => {
  crew.work = (job) =>
    job.job_type === "generate"
      ? { result: { dataset_uri: "forge://artifacts/samples/x.jsonl", text: "x".repeat(200_000) } }
      : usualWork(job);
  const text = "${steps.make.result.text}";
  const failed = await untilPipeline(
    forge.user,
    await startPipeline(forge.user, {
      steps: [
        { name: "make", job_type: "generate", payload: { domain: "law", num_samples: 1 } },
        {
          name: "use",
          job_type: "audit",
          payload: { dataset_uri: URI },
          params: { a: text, b: text },
        },
      ],
    }),
  );
  expect(failed).toMatchObject({ status: "failed", error_code: "step_invalid" });
  expect(failed.error).toMatch(/too large together/);
});

test("a budget stops the pipeline before the step that would exceed it; a resume with a new one forgets the old warning", async () => {
  const id = await startPipeline(forge.user, { ...BYO_DATA, budget_usd: 0.6 });
  await forge.user.call("PUT", `/api/pipelines/${id}/budget`, {
    budget_usd: 0.6,
    warning_usd: 0.1,
  });
  const failed = await untilPipeline(forge.user, id);
  expect(failed).toMatchObject({ status: "failed", error_code: "budget_exhausted" });
  expect(failed.error).toMatch(/step "train".*0\.5 USD of 0\.6 USD are spent, and 1\.25 USD more/);
  expect(failed.cost_usd).toBeCloseTo(0.5, 6);
  expect(failed.budget_state).toBe("warning");
  await forge.user.post(`/api/pipelines/${id}/resume`, { budget_usd: 10 });
  expect(await untilPipeline(forge.user, id)).toMatchObject({
    status: "completed",
    budget_state: "ok",
  });
});

test("with reuse, a step takes an artifact made from the same inputs, and the manifest says so", async () => {
  const upload = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.user.key, "content-type": "application/x-ndjson" },
    body: '{"q": "why?"}\n',
  });
  const { dataset_uri: uri } = (await upload.json()) as { dataset_uri: string };
  // Reuse compares input artifacts by their files, so these workers upload files.
  const filed = await new WorkerPool(forge, usualWork, true).start(1, "filer");
  await crew.stop();
  const body = {
    template: "byo-data",
    params: {
      audit: { dataset_uri: uri },
      distill: { teacher: "t" },
      train: { model: "m", epochs: 1 },
    },
    reuse: true,
  };
  const first = await untilPipeline(forge.user, await startPipeline(forge.user, body));
  expect(first.steps.map(({ reused }) => reused)).toEqual([false, false, false, false, false]);
  const second = await untilPipeline(forge.user, await startPipeline(forge.user, body));
  expect(second).toMatchObject({ status: "completed", cost_usd: expect.any(Number) });
  expect(second.steps.map(({ reused }) => reused)).toEqual([true, true, true, true, false]);
  expect(stepOf(second, "train")).toMatchObject({
    job_id: stepOf(first, "train").job_id,
    cost_usd: 0,
  });
  const deployed = await artifactOf(forge.user, stepOf(second, "deploy").job_id ?? "");
  const trained = await artifactOf(forge.user, stepOf(first, "train").job_id ?? "");
  expect(deployed.manifest.pipeline).toMatchObject({
    pipeline_id: second.pipeline_id,
    step: "deploy",
    reused: expect.arrayContaining([
      { step: "train", job_id: stepOf(first, "train").job_id, artifact_id: trained.artifact_id },
    ]),
  });
  expect(manifestErrors(deployed.manifest)).toEqual([]);

  // With other parameters, or without reuse, the step runs again.
  const other = { ...body, params: { ...body.params, train: { model: "m", epochs: 2 } } };
  const third = await untilPipeline(forge.user, await startPipeline(forge.user, other));
  expect(third.steps.map(({ reused }) => reused)).toEqual([true, true, false, false, false]);
  // A resume from a named step runs this step again. Earlier steps stay as they are.
  await forge.user.post(`/api/pipelines/${second.pipeline_id}/resume`, { from: "train" });
  const redone = await untilPipeline(forge.user, second.pipeline_id);
  expect(redone.steps.map(({ reused }) => reused)).toEqual([true, true, false, false, false]);
  expect(stepOf(redone, "train").job_id).not.toBe(stepOf(second, "train").job_id);
  // Here, the named step fails, and the next resume names no step. This resume must run the step
  // again, too, and not reuse an earlier result.
  filed.work = (job) => (job.job_type === "distill" ? { error: "out of luck" } : usualWork(job));
  await forge.user.post(`/api/pipelines/${third.pipeline_id}/resume`, { from: "distill" });
  expect((await untilPipeline(forge.user, third.pipeline_id)).status).toBe("failed");
  filed.work = usualWork;
  await forge.user.post(`/api/pipelines/${third.pipeline_id}/resume`, {});
  const retried = await untilPipeline(forge.user, third.pipeline_id);
  expect(retried.steps.map(({ reused }) => reused)).toEqual([true, false, false, false, false]);
  const fourth = await startPipeline(forge.user, { ...body, reuse: false });
  const again = await untilPipeline(forge.user, fourth);
  expect(again.steps.some(({ reused }) => reused)).toBe(false);
  await filed.stop();
  crew = await new WorkerPool(forge).start(3, "later");
});

test.each<[string, object, string]>([
  [
    "a circle",
    {
      steps: [
        { name: "a", job_type: "audit", payload: { dataset_uri: URI }, needs: ["b"] },
        { name: "b", job_type: "audit", payload: { dataset_uri: "${steps.a.result.dataset_uri}" } },
      ],
    },
    "steps",
  ],
  ["an unknown name", { ...BYO_DATA, approvals: ["evalute"] }, "approvals.0"],
  [
    "a dataset for a checkpoint",
    {
      steps: [
        { name: "a", job_type: "audit", payload: { dataset_uri: URI } },
        {
          name: "b",
          job_type: "evaluate",
          payload: { model_id: "${steps.a.result.dataset_id}" },
        },
      ],
    },
    "steps.1.payload.checkpoint_id",
  ],
  [
    "a missing field",
    { ...BYO_DATA, params: { audit: { dataset_uri: URI } } },
    "params.distill.teacher",
  ],
  [
    "a misspelt field",
    { ...BYO_DATA, params: { ...BYO_DATA.params, train: { model: "m", epoch: 1 } } },
    "params.train.epoch",
  ],
  [
    "a gate with a function call",
    { ...BYO_DATA, gates: [{ step: "audit", condition: "exit()" }] },
    "gates.0.condition",
  ],
  ["neither form", { stepz: [] }, "template"],
])("%s is refused at submission, with the field", async (_what, body, param) => {
  const before = await forge.user.get<{ pipelines: Pipeline[] }>("/api/pipelines?limit=1");
  const answer = await forge.user.call("POST", "/api/pipelines", body);
  expect(answer).toMatchObject({
    status: 400,
    body: { error: { code: "invalid_request", param } },
  });
  const after = await forge.user.get<{ pipelines: Pipeline[] }>("/api/pipelines?limit=1");
  expect(after.pipelines[0]?.pipeline_id).toBe(before.pipelines[0]?.pipeline_id);
});

test("the same key and body return the same pipeline", async () => {
  const send = () =>
    forge.user.call<Pipeline>("POST", "/api/pipelines", BYO_DATA, {
      "idempotency-key": "one-pipeline",
    });
  const answers = await Promise.all([send(), send(), send()]);
  expect(new Set(answers.map(({ body }) => body.pipeline_id)).size).toBe(1);
  await untilPipeline(forge.user, answers[0]?.body.pipeline_id ?? "");
});
