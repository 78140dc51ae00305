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
    FORGE_ASSIGNMENT_TIMEOUT_S: "1",
    FORGE_TRAIN_NEEDS_GPU: "true",
  });
  other = await createTenant(forge, "other");
});

afterEach(async () => {
  await forge.settle();
});

afterAll(async () => {
  await forge?.stop();
});

const parked = (workerId: string, wanted: boolean) => async (): Promise<boolean> =>
  (await isOffered(forge.ctx.pool, workerId)) === wanted;

async function pollSeq(workerId: string): Promise<number> {
  const sql = "select poll_seq from workers where worker_id = $1";
  const [row] = await all<{ poll_seq: number }>(forge.ctx.pool, sql, [workerId]);
  return row?.poll_seq ?? 0;
}

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
    const poll = worker.next(20);
    await waitFor("the poll to be parked", parked("w-parked", true));
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const handed = await poll;
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
    await waitFor("the poll to be parked", parked("w-gone", true));
    controller.abort();
    await poll;
    await waitFor("the worker to be withdrawn", parked("w-gone", false));
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const other = await forge.worker("w-here");
    const handed = await other.take();
    expect(handed).toMatchObject({ job_id, attempt: 1 });
    await other.complete(handed);
    await untilEnded(forge.user, job_id);
    expect(await worker.next()).toBeUndefined();
  });

  test("asked again while parked answers the first poll, and the second gets the job", async () => {
    const worker = await forge.worker("w-double");
    const first = worker.next(30);
    await waitFor("the poll to be parked", parked("w-double", true));
    const second = worker.next(30);
    expect(await first).toBeUndefined();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const handed = await second;
    expect(handed).toMatchObject({ job_id, attempt: 1 });
    if (handed) await worker.complete(handed);
    await untilEnded(forge.user, job_id);
  });

  test("asked again in another process while parked is what the job goes to, not the poll before", async () => {
    const worker = await forge.worker("w-moved");
    const first = worker.next(30);
    await waitFor("the poll to be parked", parked("w-moved", true));
    const otherUrl = await forge.stack.startAnotherServer();
    const elsewhere = new TestWorker(
      new ApiClient(otherUrl, forge.stack.keys.workerKey),
      worker.id,
    );
    const before = await pollSeq(worker.id);
    const second = elsewhere.next(30);
    await waitFor("the later poll", async () => (await pollSeq(worker.id)) > before);
    // Where the first one is parked, and woken first.
    const { job_id } = await forge.user.submit("audit", AUDIT);
    expect(await second).toMatchObject({ job_id, attempt: 1 });
    expect(await first).toBeUndefined();
    const handed = await second;
    if (handed) await worker.complete(handed);
    await untilEnded(forge.user, job_id);
  });

  test("asked by many polls of one worker at once gives all of them the one attempt", async () => {
    const worker = await forge.worker("w-many");
    await worker.next();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilStatus(forge.user, job_id, ["assigned"]);
    const answers = await Promise.all([1, 2, 3, 4].map(() => worker.next()));
    expect(answers.map((answer) => answer?.job_id)).toEqual(Array(4).fill(job_id));
    const [handed] = answers;
    if (handed) await worker.complete(handed);
    expect((await untilEnded(forge.user, job_id)).attempts).toBe(1);
  });

  slowTest("goes on for everybody while workers register again and again", async () => {
    const workers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => forge.worker(`w-flapping-${n}`)),
    );
    // A first boot_id would be another boot, and rightly lose what the worker holds by then.
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
        const handed = await worker.next(1);
        if (handed) expect((await worker.complete(handed)).status).toBe(200);
      }
    });
    for (const { job_id } of jobs) {
      const job = await untilEnded(forge.user, job_id);
      expect(job).toMatchObject({ status: "completed", attempts: 1 });
    }
    open = false;
    await Promise.all([...flapping, ...working]);
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
    const foreign = other.worker("w-foreign");
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

const VANISHED = process.env.TEST_SLOW ? 200 : 30;

test(`polls whose clients vanish never take a job: ${VANISHED} destroyed, then as many jobs, each run once`, async () => {
  const ids = Array.from({ length: VANISHED }, (_, n) => `gone-${n}`);
  const sockets = await Promise.all(
    ids.map(async (id) => {
      await forge.worker(id);
      return await rawPoll(forge, id, 40);
    }),
  );
  await waitFor("all polls to be parked", async () => {
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
      worker.beat(1_000);
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
  for (const worker of alive) worker.silence();
}, 120_000);
