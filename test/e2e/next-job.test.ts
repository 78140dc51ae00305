import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, isOffered, untilEnded, untilStatus } from "../support/jobs";
import { rawPoll } from "../support/raw-poll";
import { slowTest } from "../support/slow";
import { createTenant, type Tenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

let forge: Forge;
let other: Tenant;

beforeAll(async () => {
  forge = await startForge({
    FORGE_ASSIGNMENT_TIMEOUT_S: "4",
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

const waiting = (workerId: string, wanted: boolean) => async (): Promise<boolean> =>
  (await isOffered(forge.ctx.pool, workerId)) === wanted;

async function pollSeq(workerId: string): Promise<number> {
  const sql = "select poll_seq from workers where worker_id = $1";
  const [row] = await all<{ poll_seq: number }>(forge.ctx.pool, sql, [workerId]);
  return row?.poll_seq ?? 0;
}

describe("next_job", () => {
  test("polled twice before a result returns the same attempt", async () => {
    const worker = await forge.worker("w-twice");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const first = await worker.take();
    const second = await worker.next();
    expect(second).toEqual(first);
    expect((await forge.user.job(job_id)).attempts).toBe(1);
    await worker.complete(first);
    await untilEnded(forge.user, job_id);
  });

  test("waiting before the job exists is woken by its commit", async () => {
    const worker = await forge.worker("w-parked");
    const poll = worker.next(20);
    await waitFor("the poll to wait", waiting("w-parked", true));
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await poll;
    expect(dispatched?.job_id).toBe(job_id);
    if (dispatched) await worker.complete(dispatched);
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
    await waitFor("the poll to wait", waiting("w-gone", true));
    controller.abort();
    await poll;
    await waitFor("the worker to be withdrawn", waiting("w-gone", false));
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const other = await forge.worker("w-here");
    const dispatched = await other.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 1 });
    await other.complete(dispatched);
    await untilEnded(forge.user, job_id);
    expect(await worker.next()).toBeUndefined();
  });

  test("polled again while waiting answers the first poll, and the second gets the job", async () => {
    const worker = await forge.worker("w-double");
    const first = worker.next(30);
    await waitFor("the poll to wait", waiting("w-double", true));
    const second = worker.next(30);
    expect(await first).toBeUndefined();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await second;
    expect(dispatched).toMatchObject({ job_id, attempt: 1 });
    if (dispatched) await worker.complete(dispatched);
    await untilEnded(forge.user, job_id);
  });

  test("polled again in another process while waiting: the job goes to the second poll", async () => {
    const worker = await forge.worker("w-moved");
    const first = worker.next(30);
    await waitFor("the poll to wait", waiting("w-moved", true));
    const otherUrl = await forge.stack.startAnotherServer();
    const elsewhere = new TestWorker(
      new ApiClient(otherUrl, forge.stack.keys.workerKey),
      worker.id,
    );
    const before = await pollSeq(worker.id);
    const second = elsewhere.next(30);
    await waitFor("the later poll", async () => (await pollSeq(worker.id)) > before);
    // Submit in the process where the first poll waits. This wakes the first poll before the second
    // one, but the first poll must not get the job.
    const { job_id } = await forge.user.submit("audit", AUDIT);
    expect(await second).toMatchObject({ job_id, attempt: 1 });
    expect(await first).toBeUndefined();
    const dispatched = await second;
    if (dispatched) await worker.complete(dispatched);
    await untilEnded(forge.user, job_id);
  });

  test("with many polls of one worker at once gives all of them the same attempt", async () => {
    const worker = await forge.worker("w-many");
    await worker.next();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilStatus(forge.user, job_id, ["assigned"]);
    const answers = await Promise.all([1, 2, 3, 4].map(() => worker.next()));
    expect(answers.map((answer) => answer?.job_id)).toEqual(Array(4).fill(job_id));
    const [dispatched] = answers;
    if (dispatched) await worker.complete(dispatched);
    expect((await untilEnded(forge.user, job_id)).attempts).toBe(1);
  });

  slowTest("continues for all workers while others register again and again", async () => {
    const workers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => forge.worker(`w-flapping-${n}`)),
    );
    // Send a boot_id before the workers get jobs. If a worker sends its first boot_id while it has
    // a job, this counts as a restart and ends the attempt.
    const register = (worker: TestWorker) => worker.register(undefined, { boot_id: "same" });
    await Promise.all(workers.map(register));
    const jobs = await Promise.all(
      Array.from({ length: 40 }, () => forge.user.submit("audit", AUDIT)),
    );
    let open = true;
    const flapping = workers.map(async (worker) => {
      while (open) await register(worker);
    });
    const working = workers.map(async (worker) => {
      while (open) {
        const dispatched = await worker.next(1);
        if (dispatched) expect((await worker.complete(dispatched)).status).toBe(200);
      }
    });
    for (const { job_id } of jobs) {
      const job = await untilEnded(forge.user, job_id);
      expect(job).toMatchObject({ status: "completed", attempts: 1 });
    }
    open = false;
    await Promise.all([...flapping, ...working]);
  });

  test("an assignment that is not fetched returns to the queue, and does not count", async () => {
    await forge.worker("w-forgetful").then((worker) => worker.next());
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilStatus(forge.user, job_id, ["assigned"]);
    const other = await forge.worker("w-awake");
    const dispatched = await other.take();
    expect(dispatched).toMatchObject({ job_id, attempt: 1 });
    await other.complete(dispatched);
    expect((await untilEnded(forge.user, job_id)).attempts).toBe(1);
  });

  test("gives train jobs to GPU workers only, and no worker another tenant's jobs", async () => {
    const cpu = await forge.worker("w-cpu");
    const foreign = other.worker("w-foreign");
    await foreign.register({ name: "NVIDIA A100", memory_gb: 80 });
    const { job_id } = await forge.user.submit("train", { dataset_id: "d", model: "m" });
    expect(await cpu.next()).toBeUndefined();
    expect(await foreign.next()).toBeUndefined();
    const gpu = await forge.worker("w-gpu", { name: "NVIDIA H100", memory_gb: 80 });
    const dispatched = await gpu.take();
    expect(dispatched.job_id).toBe(job_id);
    await gpu.complete(dispatched);
    await untilEnded(forge.user, job_id);
  });
});

const VANISHED = process.env.TEST_SLOW ? 200 : 30;

test(`polls whose clients vanish never take a job: ${VANISHED} destroyed, then as many jobs, each run once`, async () => {
  const ids = Array.from({ length: VANISHED }, (_, n) => `gone-${n}`);
  const sockets = await Promise.all(
    ids.map(async (id) => {
      await forge.worker(id);
      return await rawPoll(forge, id, 40);
    }),
  );
  await waitFor("all polls to wait", async () => {
    const rows = await all(
      forge.ctx.pool,
      "select from workers where worker_id = any($1) and available_until > now() and status = 'idle'",
      [ids],
    );
    return rows.length === ids.length;
  });
  for (const socket of sockets) socket.destroy();
  const alive = await Promise.all(
    Array.from({ length: 5 }, async (_, n) => {
      const worker = await forge.worker(`alive-${n}`);
      worker.startHeartbeats(1_000);
      return worker;
    }),
  );
  let open = true;
  const working = alive.map(async (worker) => {
    while (open) {
      const job = await worker.next(1);
      if (job) await worker.complete(job);
    }
  });
  const jobs = await Promise.all(ids.map(() => forge.user.submit("audit", AUDIT)));
  for (const { job_id } of jobs) {
    const job = await untilEnded(forge.user, job_id, 60_000);
    expect(job).toMatchObject({ status: "completed", attempts: 1 });
    expect(job.worker_id).toMatch(/^alive-/);
  }
  open = false;
  await Promise.all(working);
  for (const worker of alive) worker.stopHeartbeats();
}, 120_000);
