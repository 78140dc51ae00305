import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { createTenant, type Tenant } from "../support/tenants";

let forge: Forge;
let other: Tenant;

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: "8",
    FORGE_ASSIGNMENT_TIMEOUT_S: "1",
    FORGE_TRAIN_NEEDS_GPU: "true",
  });
  other = await createTenant(forge, "other");
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

describe("job_result", () => {
  test("sent again is accepted again, and changes nothing", async () => {
    const worker = await forge.worker("w-again");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    const answers = await Promise.all([1, 2, 3].map(() => worker.complete(dispatched)));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
    await untilEnded(forge.user, job_id);
    expect((await worker.complete(dispatched)).body).toEqual({ job_id, accepted: true });
    const other = await worker.complete(dispatched, { metrics: { rows_processed: 999_999 } });
    expect(other).toMatchObject({ status: 409, body: { error: { code: "stale_attempt" } } });
    expect(await forge.user.get(`/api/billing/records/${job_id}`)).toMatchObject({
      total_cost_usd: 0.2,
    });
  });

  test("of a worker that lost the job is stale, whichever worker has it now", async () => {
    const zombie = await forge.worker("w-zombie");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const lost = await zombie.take();
    // Without heartbeats, the first worker is marked dead after 8 s, and the job is queued again.
    const heir = await forge.worker("w-heir");
    heir.startHeartbeats();
    const dispatched = await heir.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 2 });
    expect(dispatched.output_ids).not.toEqual(lost.output_ids);
    for (const late of [await zombie.complete(lost), await zombie.complete(lost, { attempt: 2 })]) {
      expect(late).toMatchObject({ status: 409, body: { error: { code: "stale_attempt" } } });
    }
    const { status, commands } = await zombie.heartbeat({ job_id, attempt: 1 });
    expect(status).toBe("idle");
    expect(commands).toEqual([{ type: "job_lost", job_id, attempt: 1 }]);
    await heir.complete(dispatched, { metrics: { rows_processed: 5000 } });
    heir.stopHeartbeats();
    const job = await untilEnded(forge.user, job_id);
    expect(job).toMatchObject({ status: "completed", attempts: 2, worker_id: "w-heir" });
    expect(await forge.user.get(`/api/billing/records/${job_id}`)).toMatchObject({
      total_cost_usd: 1,
    });
  });

  test("of a worker that never had the job is refused", async () => {
    const worker = await forge.worker("w-owner");
    const stranger = await forge.worker("w-stranger");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    expect(await stranger.complete(dispatched)).toMatchObject({
      status: 409,
      body: { error: { code: "stale_attempt" } },
    });
    const foreign = other.worker("w-other-tenant");
    await foreign.register();
    expect(await foreign.complete(dispatched)).toMatchObject({
      status: 404,
      body: { error: { code: "job_not_found" } },
    });
    const impostor = other.worker("w-owner");
    expect((await impostor.register()).status).toBe(409);
    expect(await impostor.complete(dispatched)).toMatchObject({
      status: 404,
      body: { error: { code: "worker_not_registered" } },
    });
    await worker.complete(dispatched);
    await untilEnded(forge.user, job_id);
  });

  test("of a worker whose handler wrote its own manifest gets the control plane's", async () => {
    const worker = await forge.worker("w-scribe");
    for (const content of ["not json", '{"mine": 1}']) {
      const { job_id } = await forge.user.submit("audit", AUDIT);
      const dispatched = await worker.take();
      const id = dispatched.output_ids.dataset_id ?? "";
      const folder = join(forge.stack.storeDir, "artifacts", "datasets", id);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "manifest.json"), content);
      await worker.complete(dispatched);
      await untilEnded(forge.user, job_id);
      const manifest = await forge.user.get(`/api/artifacts/${id}/manifest`);
      expect(manifest).toMatchObject({ artifact_id: id, job_id });
      expect(JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"))).toEqual(manifest);
    }
  });

  test.each([
    [
      "usage too large for a bill",
      { metrics: { samples_evaluated: 1e15 } },
      "metrics.samples_evaluated",
    ],
    ["NUL", { result: { note: "\0" } }, "result.note"],
    ["half a surrogate pair", { result: { "\ud800": 1 } }, "result."],
    ["an attempt number beyond reason", { attempt: 2_147_483_648 }, "attempt"],
    ["a path for an id", { result: { dataset_id: "../x" } }, "result.dataset_id"],
  ])("with %s is refused, and the job continues", async (_what, more, param) => {
    const worker = await forge.worker("w-odd");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    expect(await worker.complete(dispatched, more)).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param } },
    });
    expect((await worker.complete(dispatched)).status).toBe(200);
    await untilEnded(forge.user, job_id);
  });

  test("with impossible usage is refused with the field's name, and may be corrected", async () => {
    const worker = await forge.worker("w-negative");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    expect(await worker.complete(dispatched, { metrics: { rows_processed: -1 } })).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request", param: "metrics.rows_processed" } },
    });
    expect((await forge.user.job(job_id)).status).toBe("running");
    expect((await worker.complete(dispatched)).status).toBe(200);
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
  test("a failure is final, with the worker's error", async () => {
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

  test("a retryable failure is retried as often as the job allows", async () => {
    const worker = await forge.worker("w-retries");
    worker.startHeartbeats();
    const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
    await worker.fail(await worker.take(), { retryable: true });
    const second = await worker.take();
    expect(second).toMatchObject({ job_id, attempt: 2 });
    await worker.fail(second, { retryable: true });
    worker.stopHeartbeats();
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "failed",
      error_code: "job_error",
      attempts: 2,
    });
  });

  test("a restarted worker loses its job at once, unless it names the job", async () => {
    const worker = await forge.worker("w-restarts");
    worker.startHeartbeats();
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
    worker.stopHeartbeats();
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "completed",
      attempts: 2,
    });
  });

  test("an attempt that runs too long times out", async () => {
    const worker = await forge.worker("w-slow");
    worker.startHeartbeats();
    const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
    const dispatched = await worker.take();
    const job = await untilEnded(forge.user, job_id);
    expect(job).toMatchObject({ status: "failed", error_code: "timeout" });
    expect((await worker.complete(dispatched)).status).toBe(409);
    worker.stopHeartbeats();
  });
});
