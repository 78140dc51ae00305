import pg from "pg";
import { ApiClient } from "../../dev/api-client";
import { quantile } from "../../dev/bench/dispatch-latency";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, isOffered, untilEnded } from "../support/jobs";
import { countWaiting, untilServerWaits, withLock } from "../support/locks";
import { type DispatchedJob, TestWorker } from "../support/test-worker";

/**
 * After a process has frozen during a pass of the scheduler, another process must assign a job
 * within this time. Postgres ends the frozen pass's transaction after 2 s (FROZEN_MS). With the
 * connection pool's time-out, this would take 30 s.
 */
const ASSIGNED_WITHIN_S = 10;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server"] });
});

// `endTest` also makes this test's workers unavailable: they must not get the next test's jobs.
afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

/** Takes the matcher's lock. The id is that of MATCHER_LOCK in services/fleet/assignment-sql.ts. */
const LOCK_MATCHER = "select pg_advisory_xact_lock(7263002)";

const countMatchersWaiting = async (): Promise<number> => {
  const waiting = `select from pg_locks join pg_stat_activity using (pid)
    where datname = current_database() and locktype = 'advisory' and not granted`;
  return (await all(forge.ctx.pool, waiting)).length;
};

/**
 * The lock is held until all calls are answered. So a call that waits for the lock would fail after
 * 4 s, the statement timeout.
 */
test("while the matcher's lock is held only matching waits for it, once in each process", async () => {
  const worker = await forge.worker("busy");
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  const waiting = await withLock(forge, LOCK_MATCHER, [], async () => {
    const submitted = await Promise.all(
      Array.from({ length: 10 }, () => forge.user.submit("audit", AUDIT)),
    );
    await waitFor("a matcher to wait", async () => (await countMatchersWaiting()) > 0);
    expect(await countMatchersWaiting()).toBeLessThanOrEqual(forge.servers().length);
    // Poll again, like a worker that did not get the response.
    expect(await worker.take()).toMatchObject({ job_id: jobId, attempt: 1 });
    await worker.heartbeat({ job_id: jobId });
    expect(await worker.upload(job, "scored.jsonl", '{"a":1}\n')).toBe(201);
    expect((await worker.complete(job)).status).toBe(200);
    expect((await untilEnded(forge.user, jobId)).status).toBe("completed");
    const [cancelled, ...others] = submitted;
    await forge.user.post(`/api/jobs/${cancelled?.job_id}/cancel`, {});
    expect(await untilEnded(forge.user, String(cancelled?.job_id))).toMatchObject({
      error_code: "cancelled",
    });
    expect((await worker.register()).status).toBe(201);
    return others;
  });
  for (const _ of waiting) await worker.complete(await worker.take());
  for (const { job_id } of waiting) await untilEnded(forge.user, job_id);
}, 90_000);

/**
 * Limit of the median wait; single rounds may take longer if the machine pauses. Far less than two
 * seconds, the interval of the sweep, which would assign the jobs in any case.
 */
const WITHIN_MS = 500;
const ROUNDS = 6;

test("a job that is submitted while another process holds the lock is assigned as soon as the lock is free", async () => {
  const { stack } = forge;
  const url = await stack.startAnotherServer();
  const worker = new TestWorker(new ApiClient(url, stack.keys.workerKey), "prompt");
  await worker.register();
  // Queue a job that fits no worker. Without it, the next job would be the tenant's only queued
  // one, and such a job is assigned without a pass and without the lock.
  const { job_id: fitsNone } = await forge.user.submit("audit", {
    ...AUDIT,
    resources: { gpu: 1 },
  });
  const waitedMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const poll = worker.take();
    await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, worker.id));
    await withLock(forge, LOCK_MATCHER, [], async () => {
      await forge.user.submit("audit", AUDIT);
      await waitFor("a matcher to wait", async () => (await countMatchersWaiting()) > 0);
    });
    const freed = performance.now();
    const job = await poll;
    waitedMs.push(performance.now() - freed);
    await worker.complete(job);
    await untilEnded(forge.user, job.job_id);
  }
  await forge.user.post(`/api/jobs/${fitsNone}/cancel`, {});
  await untilEnded(forge.user, fitsNone);
  expect(quantile(waitedMs, 0.5)).toBeLessThan(WITHIN_MS);
}, 60_000);

/**
 * An SQL statement that assigns a job, as another server process would. The test runs the statement
 * in a transaction, and commits the transaction later.
 */
const ASSIGN = `with job as (update jobs set status = 'assigned', worker_id = $2 where job_id = $1),
  attempt as (update attempts set state = 'assigned', worker_id = $2, assigned_at = now() where job_id = $1)
  update workers set status = 'busy' where worker_id = $2`;

test("a pass that chose the same job as another process tries the next one at once", async () => {
  const worker = await forge.worker("late");
  const other = await forge.worker("early");
  const waitedMs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { job_id: first } = await forge.user.submit("audit", AUDIT);
    const { job_id: second } = await forge.user.submit("audit", AUDIT);
    const client = new pg.Client({ connectionString: forge.stack.databaseUrl });
    await client.connect();
    let poll: Promise<DispatchedJob>;
    try {
      await client.query("begin");
      await client.query(ASSIGN, [first, other.id]);
      poll = worker.take();
      await untilServerWaits(forge);
      await client.query("commit");
    } finally {
      await client.end();
    }
    const freed = performance.now();
    const job = await poll;
    waitedMs.push(performance.now() - freed);
    expect(job.job_id).toBe(second);
    await worker.complete(job);
    await other.complete(await other.take());
    for (const id of [first, second]) await untilEnded(forge.user, id);
  }
  expect(quantile(waitedMs, 0.5)).toBeLessThan(WITHIN_MS);
}, 60_000);

test("a frozen process that holds the matcher's lock does not block assignment", async () => {
  const { stack, ctx } = forge;
  const url = await stack.startAnotherServer();
  const frozen = stack.otherServers.at(-1);
  if (!frozen) throw new Error("there is no other server");
  const there = new TestWorker(new ApiClient(url, stack.keys.workerKey), "there");
  await there.register();
  const first = await forge.user.submit("audit", AUDIT);
  // Freeze the other processes, so that only `frozen` can assign jobs until it is frozen itself.
  const others = forge.servers().filter((server) => server !== frozen);
  for (const server of others) server.signal("SIGSTOP");
  let poll: Promise<unknown> = Promise.resolve();
  try {
    const row = "select from jobs where job_id = $1 for no key update";
    await withLock(forge, row, [first.job_id], async () => {
      // Make the matcher wait for its lock. A matcher that had to wait takes the lock in an
      // explicit transaction, which stays open when its process is frozen.
      await withLock(forge, LOCK_MATCHER, [], async () => {
        poll = there.next(40).catch(() => undefined);
        await waitFor("its matcher to wait", async () => (await countMatchersWaiting()) > 0);
      });
      await waitFor("it to have the lock", async () => (await countMatchersWaiting()) === 0, {
        everyMs: 20,
      });
      await untilServerWaits(forge);
      frozen.signal("SIGSTOP");
    });
    await waitFor("its statement to have ended under the lock", async () => {
      const held = await all(
        ctx.pool,
        `select from pg_stat_activity join pg_locks using (pid)
         where datname = current_database() and state like 'idle in transaction%'
           and locktype = 'advisory'`,
      );
      return held.length > 0;
    });
  } finally {
    for (const server of others) server.signal("SIGCONT");
  }
  const second = await forge.user.submit("audit", AUDIT);
  const here = await forge.worker("here");
  await here.complete(await here.take(ASSIGNED_WITHIN_S));
  frozen.signal("SIGCONT");
  // `poll` ends now, because its call to the database timed out while its process was frozen.
  await poll;
  const again = new TestWorker(new ApiClient(stack.apiUrl, stack.keys.workerKey), "there");
  await again.complete(await again.take());
  for (const { job_id } of [first, second]) {
    expect((await untilEnded(forge.user, job_id)).status).toBe("completed");
  }
}, 60_000);

test("a frozen process that holds a queued job does not keep others from being assigned", async () => {
  const held = await forge.user.submit("audit", AUDIT);
  const row = "select from jobs where job_id = $1 for no key update";
  let polls: Promise<{ worker: TestWorker; job: DispatchedJob }>[] = [];
  await withLock(forge, row, [held.job_id], async () => {
    const other = await forge.user.submit("audit", AUDIT);
    const workers = [await forge.worker("free-1"), await forge.worker("free-2")];
    polls = workers.map(async (worker) => ({ worker, job: await worker.take(ASSIGNED_WITHIN_S) }));
    const taken = await Promise.any(polls);
    expect(taken.job.job_id).toBe(other.job_id);
    await taken.worker.complete(taken.job);
  });
  // After the lock is released, the other worker gets the locked job, unless its poll has already
  // timed out.
  const answered = (await Promise.allSettled(polls)).flatMap((poll) =>
    poll.status === "fulfilled" ? [poll.value] : [],
  );
  const taken = answered.find(({ job }) => job.job_id === held.job_id);
  if (taken) await taken.worker.complete(taken.job);
  else await forge.user.post(`/api/jobs/${held.job_id}/cancel`, {});
  await untilEnded(forge.user, held.job_id);
}, 60_000);

test("a frozen process that holds an idle worker does not keep a job from another one", async () => {
  const held = await forge.worker("a-held");
  const free = await forge.worker("b-free");
  // The scheduler prefers `a-held`, the first worker by id.
  const polls = [held.next(ASSIGNED_WITHIN_S), free.next(ASSIGNED_WITHIN_S)];
  for (const { id } of [held, free]) {
    await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, id));
  }
  const row = "select from workers where worker_id = $1 for update";
  await withLock(forge, row, [held.id], async () => {
    const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
    const job = await polls[1];
    expect(job?.job_id).toBe(jobId);
    if (job) await free.complete(job);
    await untilEnded(forge.user, jobId);
  });
  await Promise.all(polls);
}, 60_000);

/**
 * How long the poll waits, in seconds. This is enough for several passes of the scheduler: each
 * sweep starts a pass, and a pass waits up to LOCKED_MS for a locked row.
 */
const SEVERAL_SWEEPS_S = 10;

test("a worker that no longer takes a tenant's jobs when a pass has its row gets none", async () => {
  const worker = new TestWorker(forge.admin, "shared");
  await worker.register({ name: "cpu", memory_gb: 0 });
  const poll = worker.next(SEVERAL_SWEEPS_S);
  await waitFor("the poll to wait", () => isOffered(forge.ctx.pool, worker.id));
  const client = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await client.connect();
  try {
    await client.query("begin");
    await client.query("update workers set tenants = '{other}' where worker_id = $1", [worker.id]);
    const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
    const isWaiting = async (): Promise<boolean> =>
      (await countWaiting(forge, "forge", "pg_try_advisory_xact_lock")) > 0;
    await waitFor("a pass to wait", isWaiting, { everyMs: 20 });
    await client.query("commit");
    const own = await forge.worker("own");
    const job = await own.take();
    expect(job.job_id).toBe(jobId);
    await own.complete(job);
    await untilEnded(forge.user, jobId);
  } finally {
    await client.end();
  }
  expect(await poll).toBeUndefined();
}, 60_000);
