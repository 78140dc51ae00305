import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { createKey, ensureUser } from "../../infra/database/keys";
import { all, execute } from "../../infra/database/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilStatus } from "../support/jobs";
import { TestWorker } from "../support/test-worker";

let forge: Forge;
let otherTenant: { user: ApiClient; workerKey: string };

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: "2",
    FORGE_ASSIGNMENT_TIMEOUT_S: "1",
    FORGE_TRAIN_NEEDS_GPU: "true",
  });
  const { pool } = forge.ctx;
  await ensureUser(pool, "other", "Other");
  const user = await createKey(pool, {
    userId: "other",
    scope: "user",
    name: "k",
    madeByAdmin: false,
  });
  const worker = await createKey(pool, {
    userId: "other",
    scope: "worker",
    name: "w",
    madeByAdmin: false,
  });
  otherTenant = { user: new ApiClient(forge.stack.apiUrl, user.key), workerKey: worker.key };
});

afterEach(async () => {
  await forge.proveInvariants();
  // Workers of one test must not take the jobs of the next.
  await execute(forge.ctx.pool, "update workers set available_until = null");
});

afterAll(async () => {
  await forge?.stop();
});

describe("a job of each type", () => {
  const forms: [type: string, body: Record<string, unknown>, payload: Record<string, unknown>][] = [
    [
      "generate",
      { task: "sums", size: 10, teacher: "t" },
      { task: "sums", size: 10, teacher: "t" },
    ],
    [
      "generate",
      { domain: "law", num_samples: 5 },
      { task: "synthesize", size: 5, teacher: "default-teacher", domain: "law" },
    ],
    ["audit", AUDIT, AUDIT],
    ["distill", { dataset_id: "ds_x", teacher: "t" }, { dataset_id: "ds_x", teacher: "t" }],
    [
      "distill",
      { teacher_model: "t", student_model: "s", dataset_uri: "s3://b/k" },
      { teacher: "t", student_model: "s", dataset_uri: "s3://b/k" },
    ],
    ["train", { dataset_id: "ds_x", model: "m" }, { dataset_id: "ds_x", model: "m", epochs: 3 }],
    [
      "train",
      { model_id: "m", dataset_uri: "s3://b/k", epochs: 2 },
      { model: "m", dataset_uri: "s3://b/k", epochs: 2 },
    ],
    ["evaluate", { checkpoint_id: "c" }, { checkpoint_id: "c" }],
    ["evaluate", { model_id: "c", benchmark: "b" }, { checkpoint_id: "c", benchmark: "b" }],
    ["deploy", { checkpoint_id: "c" }, { checkpoint_id: "c" }],
    ["deploy", { model_id: "c", region: "r" }, { checkpoint_id: "c", region: "r" }],
  ];

  test.each(forms)(
    "%s %j is normalised, run, billed and described",
    async (type, body, payload) => {
      const worker = await forge.worker("gpu-box", {
        name: "NVIDIA A100-SXM4-80GB",
        memory_gb: 80,
      });
      const submitted = await forge.user.submit(type, body);
      expect(submitted).toMatchObject({ status: "pending", attempts: 0, payload });

      const handed = await worker.take();
      expect(handed).toMatchObject({
        job_id: submitted.job_id,
        job_type: type,
        payload,
        attempt: 1,
      });
      const metrics = {
        gpu_hours: 2,
        tokens_generated: 2e6,
        rows_processed: 3000,
        samples_evaluated: 400,
      };
      expect((await worker.complete(handed, { metrics })).status).toBe(200);

      const job = await untilEnded(forge.user, submitted.job_id);
      expect(job).toMatchObject({ status: "completed", attempts: 1, worker_id: "gpu-box" });
      const expectedCost: Record<string, number> = {
        generate: 0.6,
        audit: 0.6,
        distill: 0.6,
        train: 2.5,
        evaluate: 0.4,
        deploy: 0,
      };
      const record = await forge.user.get(`/api/billing/records/${job.job_id}`);
      expect(record).toMatchObject({ job_type: type, total_cost_usd: expectedCost[type] });
      const { artifacts } = await forge.user.get<{ artifacts: { manifest: object }[] }>(
        `/api/jobs/${job.job_id}/artifacts`,
      );
      expect(artifacts).toHaveLength(1);
      expect(artifacts[0]?.manifest).toMatchObject({
        source_jobs: [job.job_id],
        attempt: 1,
        cost_estimate_usd: expectedCost[type],
        // The worker named a store that Forge can't see.
        verified: false,
      });
    },
  );

  test("the month's summary adds them up", async () => {
    const summary = await forge.user.get<{ total_cost_usd: number; by_job_type: object }>(
      "/api/billing/summary",
    );
    expect(summary.by_job_type).toEqual({
      generate: 1.2,
      audit: 0.6,
      distill: 1.2,
      train: 5,
      evaluate: 0.8,
      deploy: 0,
    });
    expect(summary.total_cost_usd).toBeCloseTo(8.8, 6);
  });
});

describe("next_job", () => {
  test("asked twice before a result gives the same attempt", async () => {
    const worker = await forge.worker("w-twice");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const first = await worker.take();
    const second = await worker.next();
    expect(second).toEqual(first);
    expect((await forge.user.job(job_id)).attempts).toBe(1);
    await worker.complete(first);
    await untilEnded(forge.user, job_id);
  });

  test("parked before the job exists is woken by its commit", async () => {
    const worker = await forge.worker("w-parked");
    const parked = worker.next(20);
    await waitFor("the poll to be parked", async () => {
      const rows = await all(
        forge.ctx.pool,
        "select from workers where worker_id = 'w-parked' and available_until > now()",
      );
      return rows.length === 1;
    });
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const handed = await parked;
    expect(handed?.job_id).toBe(job_id);
    if (handed) await worker.complete(handed);
    await untilEnded(forge.user, job_id);
  });

  test("of a client that hung up takes no job", async () => {
    const worker = await forge.worker("w-gone");
    const controller = new AbortController();
    const poll = fetch(`${forge.stack.apiUrl}/worker/next_job`, {
      method: "POST",
      headers: {
        "x-service-api-key": forge.stack.keys.workerKey,
        "content-type": "application/json",
      },
      body: JSON.stringify({ worker_id: "w-gone", wait_seconds: 30 }),
      signal: controller.signal,
    }).catch(() => undefined);
    const available = (wanted: boolean) => async (): Promise<boolean> => {
      const rows = await all(
        forge.ctx.pool,
        "select from workers where worker_id = 'w-gone' and available_until > now()",
      );
      return (rows.length === 1) === wanted;
    };
    await waitFor("the poll to be parked", available(true));
    controller.abort();
    await poll;
    await waitFor("the worker to be withdrawn", available(false));
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const other = await forge.worker("w-here");
    const handed = await other.take();
    expect(handed).toMatchObject({ job_id, attempt: 1 });
    await other.complete(handed);
    await untilEnded(forge.user, job_id);
    expect(await worker.next()).toBeUndefined();
  });

  test("an assignment that is not fetched goes back, uncounted", async () => {
    await forge.worker("w-forgetful").then((worker) => worker.next());
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilStatus(forge.user, job_id, ["assigned"]);
    const other = await forge.worker("w-awake");
    const handed = await other.take();
    expect(handed).toMatchObject({ job_id, attempt: 1 });
    await other.complete(handed);
    expect((await untilEnded(forge.user, job_id)).attempts).toBe(1);
  });

  test("gives train to GPU workers only, and nobody another tenant's jobs", async () => {
    const cpu = await forge.worker("w-cpu");
    const foreign = new TestWorker(
      new ApiClient(forge.stack.apiUrl, otherTenant.workerKey),
      "w-foreign",
    );
    await foreign.register({ name: "NVIDIA A100", memory_gb: 80 });
    const { job_id } = await forge.user.submit("train", { dataset_id: "d", model: "m" });
    expect(await cpu.next()).toBeUndefined();
    expect(await foreign.next()).toBeUndefined();
    const gpu = await forge.worker("w-gpu", { name: "NVIDIA H100", memory_gb: 80 });
    const handed = await gpu.take();
    expect(handed.job_id).toBe(job_id);
    await gpu.complete(handed);
    await untilEnded(forge.user, job_id);
  });
});

describe("job_result", () => {
  test("sent again is accepted again, and changes nothing", async () => {
    const worker = await forge.worker("w-again");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const handed = await worker.take();
    const answers = await Promise.all([1, 2, 3].map(() => worker.complete(handed)));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
    await untilEnded(forge.user, job_id);
    expect((await worker.complete(handed)).body).toEqual({ job_id, accepted: true });
    const other = await worker.complete(handed, { metrics: { rows_processed: 999_999 } });
    expect(other).toMatchObject({ status: 409, body: { error: { code: "stale_attempt" } } });
    expect(await forge.user.get(`/api/billing/records/${job_id}`)).toMatchObject({
      total_cost_usd: 0.2,
    });
  });

  test("of a worker that lost the job is stale, whoever has it now", async () => {
    const zombie = await forge.worker("w-zombie");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const lost = await zombie.take();
    // No heartbeat: after 2 s it is dead and the job is queued again.
    const heir = await forge.worker("w-heir");
    heir.beat();
    const handed = await heir.take();
    expect(handed).toMatchObject({ job_id, attempt: 2 });
    expect(handed.output_ids).not.toEqual(lost.output_ids);
    for (const late of [await zombie.complete(lost), await zombie.complete(lost, { attempt: 2 })]) {
      expect(late).toMatchObject({ status: 409, body: { error: { code: "stale_attempt" } } });
    }
    const { status, commands } = await zombie.heartbeat({ job_id, attempt: 1 });
    expect(status).toBe("idle");
    expect(commands).toEqual([{ type: "job_lost", job_id }]);
    await heir.complete(handed, { metrics: { rows_processed: 5000 } });
    heir.silence();
    const job = await untilEnded(forge.user, job_id);
    expect(job).toMatchObject({ status: "completed", attempts: 2, worker_id: "w-heir" });
    expect(await forge.user.get(`/api/billing/records/${job_id}`)).toMatchObject({
      total_cost_usd: 1,
    });
  });

  test("of somebody who never had the job is refused", async () => {
    const worker = await forge.worker("w-owner");
    const stranger = await forge.worker("w-stranger");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const handed = await worker.take();
    expect(await stranger.complete(handed)).toMatchObject({
      status: 409,
      body: { error: { code: "stale_attempt" } },
    });
    const foreign = new TestWorker(
      new ApiClient(forge.stack.apiUrl, otherTenant.workerKey),
      "w-other-tenant",
    );
    await foreign.register();
    expect(await foreign.complete(handed)).toMatchObject({
      status: 404,
      body: { error: { code: "job_not_found" } },
    });
    const impostor = new TestWorker(
      new ApiClient(forge.stack.apiUrl, otherTenant.workerKey),
      "w-owner",
    );
    expect((await impostor.register()).status).toBe(409);
    expect(await impostor.complete(handed)).toMatchObject({
      status: 404,
      body: { error: { code: "worker_not_registered" } },
    });
    await worker.complete(handed);
    await untilEnded(forge.user, job_id);
  });

  test("with impossible usage is refused by name, and may be sent again right", async () => {
    const worker = await forge.worker("w-negative");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const handed = await worker.take();
    expect(await worker.complete(handed, { metrics: { rows_processed: -1 } })).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param: "metrics.rows_processed" } },
    });
    expect((await forge.user.job(job_id)).status).toBe("running");
    expect((await worker.complete(handed)).status).toBe(200);
    await untilEnded(forge.user, job_id);
  });

  test("that names another job's artifact fails the job", async () => {
    const worker = await forge.worker("w-thief");
    const first = await forge.user.submit("audit", AUDIT);
    await worker.complete(await worker.take(), { result: { dataset_id: "ds_mine" } });
    await untilEnded(forge.user, first.job_id);
    const second = await forge.user.submit("audit", AUDIT);
    await worker.complete(await worker.take(), { result: { dataset_id: "ds_mine" } });
    expect(await untilEnded(forge.user, second.job_id)).toMatchObject({
      status: "failed",
      error_code: "artifact_conflict",
    });
  });
});

describe("attempts", () => {
  test("a failure is final, with the worker's word", async () => {
    const worker = await forge.worker("w-fails");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await worker.fail(await worker.take(), { logs_uri: "s3://b/log" });
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "failed",
      error_code: "job_error",
      error: "out of luck",
      logs_uri: "s3://b/log",
      attempts: 1,
    });
    expect((await forge.user.call("GET", `/api/billing/records/${job_id}`)).status).toBe(404);
  });

  test("a retryable failure is tried again, as often as the job allows", async () => {
    const worker = await forge.worker("w-retries");
    worker.beat();
    const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
    await worker.fail(await worker.take(), { retryable: true });
    const second = await worker.take();
    expect(second).toMatchObject({ job_id, attempt: 2 });
    await worker.fail(second, { retryable: true });
    worker.silence();
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "failed",
      error_code: "job_error",
      attempts: 2,
    });
  });

  test("a worker that starts again loses its job at once, one that names it keeps it", async () => {
    const worker = await forge.worker("w-restarts");
    worker.beat();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const first = await worker.take();
    await worker.register(undefined, { boot_id: "b2", job_id, attempt: 1 });
    expect(await worker.next()).toEqual(first);
    await worker.register(undefined, { boot_id: "b3" });
    const again = await worker.take();
    expect(again).toMatchObject({ job_id, attempt: 2 });
    await worker.register(undefined, { boot_id: "b3" });
    expect(await worker.next()).toEqual(again);
    await worker.complete(again);
    worker.silence();
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "completed",
      attempts: 2,
    });
  });

  test("one that runs too long times out", async () => {
    const worker = await forge.worker("w-slow");
    worker.beat();
    const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
    const handed = await worker.take();
    const job = await untilEnded(forge.user, job_id);
    expect(job).toMatchObject({ status: "failed", error_code: "timeout" });
    expect((await worker.complete(handed)).status).toBe(409);
    worker.silence();
  });
});

describe("keys", () => {
  const codeOf = (answer: { status: number; body: unknown }): string =>
    `${answer.status} ${(answer.body as { error?: { code: string } }).error?.code}`;

  test.each([
    ["no key", {}],
    [
      "a key with a typo",
      { "x-service-api-key": "forge_user_0123456789abcdef0123456789abcdef_00000000" },
    ],
    ["a bearer that is none", { authorization: "Basic Zm9vOmJhcg==" }],
  ])("%s is 403 everywhere but for the health", async (_name, headers) => {
    const anonymous = (path: string): Promise<Response> =>
      fetch(`${forge.stack.apiUrl}${path}`, { headers: headers as Record<string, string> });
    for (const path of ["/api/jobs/x", "/nowhere", "/api/auth/ping", "/workers"]) {
      const response = await anonymous(path);
      expect([response.status, await response.json()]).toEqual([
        403,
        { error: expect.objectContaining({ code: "invalid_api_key" }) },
      ]);
    }
    for (const path of ["/healthz", "/readyz"]) expect((await anonymous(path)).status).toBe(200);
  });

  test("each scope may do its part and no more", async () => {
    const worker = new ApiClient(forge.stack.apiUrl, forge.stack.keys.workerKey);
    expect(codeOf(await worker.call("POST", "/api/jobs/audit", AUDIT))).toBe(
      "403 insufficient_scope",
    );
    expect(codeOf(await worker.call("GET", "/api/workers"))).toBe("403 insufficient_scope");
    for (const [key, scope] of [
      [forge.stack.keys.workerKey, "worker"],
      [forge.stack.keys.userKey, "user"],
      [forge.stack.keys.adminKey, "admin"],
    ]) {
      const answer = await new ApiClient(forge.stack.apiUrl, key ?? "").get("/auth/ping/");
      expect(answer).toMatchObject({ ok: true, scope });
    }
  });

  test("two headers that differ are refused", async () => {
    const answer = await forge.user.call("GET", "/api/auth/ping", undefined, {
      authorization: `Bearer ${forge.stack.keys.adminKey}`,
    });
    expect(codeOf(answer)).toBe("403 invalid_api_key");
  });

  test("another tenant's job is not there; an admin sees it", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    for (const path of ["", "/attempts", "/artifacts"]) {
      const answer = await otherTenant.user.call("GET", `/api/jobs/${job_id}${path}`);
      expect(codeOf(answer)).toBe("404 job_not_found");
    }
    expect(await forge.admin.job(job_id)).toMatchObject({ job_id });
    const worker = await forge.worker("w-last");
    await worker.complete(await worker.take());
    await untilEnded(forge.user, job_id);
    expect((await otherTenant.user.call("GET", `/api/billing/records/${job_id}`)).status).toBe(404);
  });
});

describe("a submission", () => {
  test.each([
    ["audit", {}, "dataset_uri"],
    ["audit", { dataset_uri: "http://x/y" }, "dataset_uri"],
    ["audit", { dataset_uri: "s3://b/../c" }, "dataset_uri"],
    ["audit", { dataset_uri: "file:///etc/passwd" }, "dataset_uri"],
    ["audit", { ...AUDIT, dataset_url: 1 }, "dataset_url"],
    ["audit", { ...AUDIT, priority: 101 }, "priority"],
    ["audit", { ...AUDIT, max_attempts: 4 }, "max_attempts"],
    ["audit", { ...AUDIT, resources: { gpus: 1 } }, "resources.gpus"],
    ["generate", { task: "t", size: 1, num_samples: 2, teacher: "x" }, "num_samples"],
    ["generate", { task: "t", size: 1.5, teacher: "x" }, "size"],
    ["train", { model: "m" }, "dataset_id"],
    ["audits", AUDIT, "job_type"],
  ])("of %s %j is refused for its %s", async (type, body, param) => {
    const answer = await forge.user.call("POST", `/api/jobs/${type}`, body);
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param } },
    });
  });

  test("that is not JSON is refused", async () => {
    const send = (body: string, type: string): Promise<Response> =>
      fetch(`${forge.stack.apiUrl}/api/jobs/audit`, {
        method: "POST",
        headers: { "x-service-api-key": forge.stack.keys.userKey, "content-type": type },
        body,
      });
    expect((await send("{", "application/json")).status).toBe(400);
    expect((await send("x=1", "application/x-www-form-urlencoded")).status).toBe(415);
    expect((await send(`"${"x".repeat(2 ** 21)}"`, "application/json")).status).toBe(413);
  });

  test("repeated with one Idempotency-Key makes one job", async () => {
    const headers = { "idempotency-key": "once" };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => forge.user.call("POST", "/audit", AUDIT, headers)),
    );
    const ids = new Set(answers.map((answer) => (answer.body as { job_id: string }).job_id));
    expect(ids.size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get("idempotency-replayed"))).toHaveLength(9);
    const other = await forge.user.call("POST", "/audit", { dataset_uri: "s3://b/k" }, headers);
    expect(other).toMatchObject({
      status: 422,
      body: { error: { code: "idempotency_key_reused" } },
    });
    const worker = await forge.worker("w-once");
    await worker.complete(await worker.take());
    for (const id of ids) await untilEnded(forge.user, id);
  });
});
