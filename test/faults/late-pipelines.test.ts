/**
 * Processes that pause while they work for a run of a pipeline, and continue after the pipeline was
 * cancelled and resumed.
 */

import { createStepActivities } from "../../activities/pipelines/pipeline-steps";
import { createPipelineActivities } from "../../activities/pipelines/pipelines";
import { waitFor } from "../../dev/stack/wait";
import { cancelPipeline } from "../../services/pipelines/cancel-pipeline";
import { type Forge, startForge } from "../support/forge";
import { asActivity, pausingPool, pausingStatement } from "../support/late-activity";
import { readPipeline, startPipeline, stepOf, URI, untilPipeline } from "../support/pipelines";
import { slowTest } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge({ FORGE_RECONCILE_AFTER_S: "1" }, { split: true });
  worker = await forge.worker("w");
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

const STEP = { name: "a", job_type: "audit", payload: { dataset_uri: URI } };
const startOne = (more: object = {}): Promise<string> =>
  startPipeline(forge.user, { steps: [STEP], ...more });

const cancel = (id: string): Promise<unknown> => forge.user.post(`/api/pipelines/${id}/cancel`, {});

async function untilCancelled(id: string): Promise<void> {
  expect((await untilPipeline(forge.user, id)).status).toBe("cancelled");
}

/** Resumes the pipeline as soon as it is cancelled. */
async function resume(id: string): Promise<void> {
  await untilCancelled(id);
  await forge.user.post(`/api/pipelines/${id}/resume`, {});
}

async function untilCompleted(id: string): Promise<void> {
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  await forge.endTest();
}

/**
 * While no Temporal worker runs, a process begins the step and pauses before it inserts the step's
 * job. Then the pipeline is cancelled and resumed, and the process continues: it must not insert
 * the job.
 */
async function expectNoLateJob(id: string, step: string): Promise<void> {
  const of = { pipelineId: id, requestId: "late", step, run: 1 };
  const { beginStep } = createStepActivities(forge.ctx);
  const begun = await asActivity("beginStep", () => beginStep(of));
  if (!begun || !("jobId" in begun)) throw new Error("the step has not begun");
  const late = pausingStatement(forge.ctx.pool, "from pipelines", "for no key update");
  const { insertStepJob } = createStepActivities({ ...forge.ctx, pool: late.pool });
  const inserting = asActivity("insertStepJob", () => insertStepJob({ jobId: begun.jobId }));
  await late.untilPaused();
  await cancel(id);
  await forge.stack.startTemporalWorker();
  await resume(id);
  late.resume();
  expect(await inserting).toBe(false);
}

test("no job of a cancelled run is inserted into a resumed one", async () => {
  await forge.stack.temporalWorker?.kill();
  const id = await startOne();
  await expectNoLateJob(id, STEP.name);
  await worker.complete(await worker.take());
  await untilCompleted(id);
  const { jobs } = await forge.user.get<{ jobs: object[] }>(`/api/jobs?pipeline_id=${id}`);
  expect(jobs).toHaveLength(1);
}, 120_000);

slowTest(
  "no job is inserted for a step that the resumed run does not repeat",
  async () => {
    const b = { ...STEP, name: "b", optional: true };
    const c = { ...STEP, name: "c", choose: { from: ["a", "b"], by: "metrics.score" } };
    const id = await startPipeline(forge.user, { steps: [STEP, b, c], approvals: ["b"] });
    await worker.complete(await worker.take(), { metrics: { score: 1 } });
    await waitFor("step a to be completed", async () => {
      return stepOf(await readPipeline(forge.user, id), "a").status === "completed";
    });
    await forge.stack.temporalWorker?.kill();
    await forge.user.post(`/api/pipelines/${id}/approve`, { step: "b" });
    await expectNoLateJob(id, "b");
    await worker.complete(await worker.take());
    await untilCompleted(id);
    const { jobs } = await forge.user.get<{ jobs: object[] }>(`/api/jobs?pipeline_id=${id}`);
    expect(jobs).toHaveLength(2);
  },
  120_000,
);

test("a cancel does not cancel the jobs of a resumed run", async () => {
  const id = await startOne();
  const first = await worker.take();
  const late = pausingStatement(forge.ctx.pool, "from jobs", "pipeline_id = $1 and status not in");
  const cancelling = cancelPipeline({ ...forge.ctx, pool: late.pool }, id, null, "late");
  await late.untilPaused();
  // Meanwhile the pipeline's workflow cancels the job, and the worker ends it.
  await worker.fail(first);
  await resume(id);
  const second = await worker.take();
  late.resume();
  await cancelling;
  expect((await worker.complete(second)).status).toBe(200);
  await untilCompleted(id);
}, 120_000);

test("a cancel through Temporal does not cancel a resumed run", async () => {
  const id = await startOne();
  const first = await worker.take();
  const late = pausingPool(forge.ctx.pool);
  const activities = createPipelineActivities({ ...forge.ctx, pool: late.pool });
  const cancelling = asActivity("cancelPipeline", () =>
    activities.cancelPipeline({ pipelineId: id, requestId: "late", run: 1 }),
  );
  await late.untilPaused();
  await cancel(id);
  await worker.fail(first);
  await resume(id);
  const second = await worker.take();
  late.resume();
  await cancelling;
  await worker.complete(second);
  await untilCompleted(id);
}, 120_000);

slowTest(
  "an approval through Temporal does not approve a step of a resumed run",
  async () => {
    const id = await startOne({ approvals: [STEP.name] });
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    const late = pausingPool(forge.ctx.pool);
    const { decideStep } = createPipelineActivities({ ...forge.ctx, pool: late.pool });
    const deciding = asActivity("decideStep", () =>
      decideStep({ pipelineId: id, requestId: "late", run: 1, request: { step: STEP.name } }),
    );
    const refused = expect(deciding).rejects.toThrow("run 1 is over");
    await late.untilPaused();
    await cancel(id);
    await resume(id);
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    late.resume();
    await refused;
    await cancel(id);
    await untilCancelled(id);
  },
  120_000,
);
