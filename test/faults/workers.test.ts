import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, isOffered, untilEnded, untilStatus } from "../support/jobs";
import { withLock } from "../support/locks";
import { rawPoll } from "../support/raw-poll";
import { slowTest } from "../support/slow";

const TIMEOUT_S = 6;
const BLIP_S = 3;
const GRACE_S = 2;
/**
 * How long Forge keeps an attempt after its dispatch, even if the worker reports that it runs
 * nothing: the worker may not have received the job yet.
 */
const ASSIGNMENT_TIMEOUT_S = 3;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_HEARTBEAT_TIMEOUT_S: String(TIMEOUT_S),
      FORGE_CANCEL_GRACE_S: String(GRACE_S),
      FORGE_ASSIGNMENT_TIMEOUT_S: String(ASSIGNMENT_TIMEOUT_S),
    },
    { own: ["temporal"] },
  );
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const workerStatus = async (id: string): Promise<string> =>
  (await forge.user.get<{ status: string }>(`/api/workers/${id}`)).status;

test("a frozen process that locks a worker's row blocks neither other workers' heartbeats nor assignments to them", async () => {
  const stuck = await forge.worker("z-stuck");
  const idle = await forge.worker("a-idle");
  const poll = idle.take();
  // Lock the row, like a process that freezes while it accepts a result. Postgres ends such a
  // transaction after 30 s.
  const row = "select from workers where worker_id = 'z-stuck' for no key update";
  const [refused, submitted] = await withLock(forge, row, [], async () => {
    const heartbeats = [stuck.heartbeat(), idle.heartbeat()] as const;
    const refusal = heartbeats[0].catch((error: unknown) => error);
    // The heartbeat of `idle` must not wait while Forge retries the heartbeat of `stuck`.
    expect((await heartbeats[1]).status).toBe("idle");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await poll;
    expect(job.job_id).toBe(job_id);
    expect((await idle.complete(job)).status).toBe(200);
    return [await refusal, job_id];
  });
  expect(String(refused)).toContain("HTTP 503");
  expect((await stuck.heartbeat()).status).toBe("idle");
  await untilEnded(forge.user, submitted);
});

test("a heartbeat whose worker's row is locked for a moment is recorded after that", async () => {
  const worker = await forge.worker("held");
  const other = await forge.worker("not-held");
  const row = "select from workers where worker_id = 'held' for no key update";
  let heartbeat: Promise<{ status: string }> | undefined;
  await withLock(forge, row, [], async () => {
    heartbeat = worker.heartbeat({ gpu: { util: 77, mem_used: 0, mem_total: 0 } });
    // The server records heartbeats in batches. When it answers this later heartbeat, a batch has
    // already skipped the first heartbeat because of the lock.
    await other.heartbeat();
  });
  expect(await heartbeat).toMatchObject({ status: "idle" });
  expect(await forge.user.get("/api/workers/held")).toMatchObject({ util: 77 });
});

describe("a worker that is silent", () => {
  test(`for ${BLIP_S} s keeps its attempt`, async () => {
    const worker = await forge.worker("blip");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    for (let blip = 1; blip <= 2; blip++) {
      await worker.heartbeat({ job_id, attempt: 1 });
      await sleep(BLIP_S * 1000);
      expect(await worker.heartbeat({ job_id, attempt: 1 })).toMatchObject({
        status: "busy",
        commands: [],
      });
    }
    expect((await worker.complete(job)).status).toBe(200);
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "completed",
      attempts: 1,
    });
  });

  test("for longer loses it; another worker gets it, and later reports of the first change nothing", async () => {
    const zombie = await forge.worker("zombie");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const lost = await zombie.take();
    const heir = await forge.worker("heir");
    heir.startHeartbeats();
    const dispatched = await heir.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 2 });
    expect(await workerStatus("zombie")).toBe("dead");
    expect(await zombie.heartbeat({ job_id, attempt: 1 })).toMatchObject({
      status: "idle",
      commands: [{ type: "job_lost", job_id }],
    });
    expect(await zombie.complete(lost, { result: { dataset_id: "ds_zombie" } })).toMatchObject({
      status: 409,
      body: { error: { code: "stale_attempt" } },
    });
    expect((await heir.complete(dispatched, { result: { dataset_id: "ds_heir" } })).status).toBe(
      200,
    );
    heir.stopHeartbeats();
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "completed",
      attempts: 2,
      worker_id: "heir",
      result: { dataset_id: "ds_heir" },
    });
  });

  slowTest("on the last attempt fails the job with worker_lost", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    for (const attempt of [1, 2, 3]) {
      const mortal = await forge.worker(`mortal-${attempt}`);
      mortal.startHeartbeats();
      expect(await mortal.take(40)).toMatchObject({ job_id, attempt });
      mortal.stopHeartbeats();
    }
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "failed",
      error_code: "worker_lost",
      attempts: 3,
    });
  });
});

describe("a lost response", () => {
  test("of next_job: another poll returns the same job and attempt", async () => {
    const worker = await forge.worker("unheard");
    const socket = await rawPoll(forge, "unheard", 30);
    await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, "unheard"));
    // The client does not read the response.
    socket.pause();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilStatus(forge.user, job_id, ["running"]);
    socket.destroy();
    const dispatched = await worker.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 1 });
    await worker.complete(dispatched);
    expect((await untilEnded(forge.user, job_id)).attempts).toBe(1);
  });

  test("of job_result: repeated ten times at once, it is accepted once", async () => {
    const worker = await forge.worker("stammer");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    const answers = await Promise.all(Array.from({ length: 10 }, () => worker.complete(job)));
    expect(answers.map((answer) => answer.status)).toEqual(Array(10).fill(200));
    await untilEnded(forge.user, job_id);
    expect((await worker.complete(job)).status).toBe(200);
  });
});

describe("cancel while Temporal is unavailable", () => {
  test("frees an unresponsive worker within the grace period, and ends the job; Temporal follows", async () => {
    const worker = await forge.worker("away-deaf");
    worker.startHeartbeats();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await worker.take();
    await forge.own("temporal").kill();
    const asked = performance.now();
    await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
    expect(await untilEnded(forge.user, job_id)).toMatchObject({ error_code: "cancelled" });
    expect(await workerStatus("away-deaf")).toBe("error");
    expect(performance.now() - asked).toBeLessThan((GRACE_S + 10) * 1000);
    worker.stopHeartbeats();
    await forge.stack.startTemporal();
    // endTest() proves that Temporal and the database agree.
  }, 60_000);

  test("ends a queued job at once, and its workflow when Temporal is back", async () => {
    await forge.own("temporal").kill();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const answer = await forge.user.post<Job>(`/api/jobs/${job_id}/cancel`, {});
    expect(answer).toMatchObject({ status: "failed", error_code: "cancelled" });
    await forge.stack.startTemporal();
  }, 60_000);

  test("between two attempts records the usage of the lost one", async () => {
    const worker = await forge.worker("away-lost", { name: "NVIDIA A100 80GB", memory_gb: 80 });
    const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
    await worker.take();
    await forge.own("temporal").kill();
    // The worker registers after a restart, and no longer knows its job.
    await worker.register({ name: "NVIDIA A100 80GB", memory_gb: 80 }, { boot_id: "another" });
    expect((await forge.user.job(job_id)).status).toBe("pending");
    await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
    await forge.stack.startTemporal();
    await waitFor("its hours to be noted", async () => {
      const [line] = await all<{ unbilled_gpu_hours: number }>(
        forge.ctx.pool,
        "select unbilled_gpu_hours from billing_lines where job_id = $1",
        [job_id],
      );
      return line !== undefined && line.unbilled_gpu_hours > 0;
    });
  }, 60_000);
});

test("a worker that reports five times in a row that it runs nothing has lost the attempt", async () => {
  const worker = await forge.worker("forgetful");
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
  const { attempt } = await worker.take();
  const deny = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) await worker.heartbeat({ job_id: null });
  };
  await deny(4);
  await worker.heartbeat({ job_id, attempt });
  await deny(4);
  // A heartbeat with `job_id: null` reports that the worker runs nothing. Forge counts these
  // heartbeats. A heartbeat that names the job resets the count. A heartbeat without `job_id` does
  // not change the count.
  await worker.heartbeat();
  expect((await forge.user.job(job_id)).status).toBe("running");
  await deny(1);
  const other = await forge.worker("mindful");
  const again = await other.take();
  const [{ ran_s: ranS } = { ran_s: 0 }] = await all<{ ran_s: number }>(
    forge.ctx.pool,
    `select extract(epoch from ended_at - started_at)::float8 as ran_s from attempts
     where job_id = $1 and attempt = 1`,
    [job_id],
  );
  expect(ranS).toBeGreaterThanOrEqual(ASSIGNMENT_TIMEOUT_S);
  expect(again).toMatchObject({ job_id, attempt: 2 });
  await other.complete(again);
  expect((await untilEnded(forge.user, job_id)).attempts).toBe(2);
});

test("a restarted agent that names its job keeps the attempt", async () => {
  const worker = await forge.worker("faithful");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  await worker.register(undefined, { boot_id: "new", job_id, attempt: job.attempt });
  expect((await worker.complete(job)).status).toBe(200);
  expect((await untilEnded(forge.user, job_id)).attempts).toBe(1);
});
