/**
 * Sets the database's clock while transactions are in flight. Servers notice this, and record by
 * how many seconds the clock was set (a step).
 */

import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { untilServerWaits, withLock } from "../support/locks";
import { useSettableClock } from "../support/settable-clock";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

const DAY_S = 86_400;
const HOUR_S = 3_600;
/**
 * How long a transaction stays in flight: longer than servers need to notice a clock step, and
 * shorter than the statement timeout.
 */
const NOTICED_MS = 3_000;

let forge: Forge;
let setClock: (byS: number) => Promise<void>;
/**
 * The ids of a test's workers. They are removed after the test, so that they don't get the next
 * test's jobs.
 */
const registered: string[] = [];

beforeAll(async () => {
  // For 600 s after its registration, a worker can be assigned a job without a poll.
  forge = await startForge({ FORGE_OFFER_S: "600" }, { own: ["server"] });
  setClock = await useSettableClock(forge);
}, 120_000);

afterEach(async () => {
  for (const id of registered.splice(0)) await forge.user.call("DELETE", `/api/workers/${id}`);
  await setClock(0);
  await untilRecorded(0);
});

afterAll(async () => {
  await forge?.stop();
});

async function recordedS(): Promise<number> {
  const sum = "select coalesce(sum(by_s), 0)::float8 as s from clock_steps";
  return (await maybeOne<{ s: number }>(forge.ctx.pool, sum))?.s ?? 0;
}

const untilRecorded = (byS: number, timeoutMs = 20_000): Promise<unknown> =>
  waitFor("the step to be recorded", async () => Math.abs((await recordedS()) - byS) < 5, {
    timeoutMs,
  });

interface Times {
  assigned_s: number;
  started_s: number;
  left_s: number;
}

/** How long ago an attempt was assigned and started, and its remaining time. */
const readTimes = (jobId: string): Promise<Times | undefined> =>
  maybeOne<Times>(
    forge.ctx.pool,
    `select extract(epoch from now() - assigned_at)::float8 as assigned_s,
            extract(epoch from now() - started_at)::float8 as started_s,
            extract(epoch from deadline_at - now())::float8 as left_s
     from attempts where job_id = $1 and state = 'running'`,
    [jobId],
  );

const submit = async (): Promise<string> =>
  (await forge.user.submit("audit", { ...AUDIT, timeout_s: HOUR_S })).job_id;

async function register(id: string): Promise<TestWorker> {
  registered.push(id);
  return await forge.worker(id);
}

/** A worker that was assigned a job and has not polled for it. */
async function assigned(id: string): Promise<{ worker: TestWorker; jobId: string }> {
  const worker = await register(id);
  const jobId = await submit();
  await waitFor(
    "it to be assigned",
    async () => (await forge.user.job(jobId)).status === "assigned",
  );
  return { worker, jobId };
}

/**
 * Keeps a transaction of the job in flight while `work` sets the clock. `work` gets a function that
 * waits until the transaction is in flight.
 */
type Hold = (
  jobId: string,
  work: (untilInFlight: () => Promise<unknown>) => Promise<Taking>,
) => Promise<Taking>;

interface Taking {
  worker: TestWorker;
  job: Promise<DispatchedJob>;
}

const holdRow: Hold = (jobId, work) =>
  withLock(forge, "select from jobs where job_id = $1 for no key update", [jobId], () =>
    work(() => untilServerWaits(forge)),
  );

/**
 * Delays the assignment itself, by a trigger that sleeps. A lock on the job's row would not delay
 * the assignment for long enough, because a pass of the scheduler waits only briefly for a lock.
 */
const slowDown: Hold = async (_jobId, work) => {
  const { pool } = forge.ctx;
  await pool.query(
    `create function slow_down() returns trigger language plpgsql as
     $$ begin perform pg_sleep(${NOTICED_MS / 1_000}); return new; end $$;
     create trigger slow_down before update on attempts for each row
     when (old.state = 'queued' and new.state = 'assigned') execute function slow_down()`,
  );
  const sleeps = `select from pg_stat_activity
    where datname = current_database() and wait_event = 'PgSleep'`;
  try {
    return await work(() =>
      waitFor("the assignment", async () => (await all(pool, sleeps)).length > 0),
    );
  } finally {
    await execute(pool, "drop function slow_down cascade");
  }
};

/**
 * The transactions that are in flight while the clock is set. Each function submits a job and
 * returns:
 * - `jobId`: the job's id,
 * - `hold`: a function that keeps the transaction in flight,
 * - `begin`: a function that returns the worker for the job.
 *
 * A dispatch starts when the worker polls. An assignment starts when `begin` registers the worker.
 */
const IN_FLIGHT = {
  async dispatch(id: string) {
    const { worker, jobId } = await assigned(id);
    return { jobId, hold: holdRow, begin: async () => worker };
  },
  async assignment(id: string) {
    return { jobId: await submit(), hold: slowDown, begin: () => register(id) };
  },
};
type Kind = keyof typeof IN_FLIGHT;

test.each<[Kind, number]>([
  ["dispatch", DAY_S],
  ["dispatch", -DAY_S],
  ["assignment", DAY_S],
  ["assignment", -DAY_S],
])(
  "an attempt whose %s was in flight while the clock was set by %i s keeps its deadline and its billed time",
  async (kind, byS) => {
    const { jobId, hold, begin } = await IN_FLIGHT[kind](`${kind}${byS}`);
    const taking = await hold(jobId, async (untilInFlight) => {
      const worker = await begin();
      const job = worker.take();
      await untilInFlight();
      await setClock(byS);
      await untilRecorded(byS, NOTICED_MS).catch(() => undefined);
      return { worker, job };
    });
    const { worker } = taking;
    const job = await taking.job;
    await untilRecorded(byS);
    const times = await readTimes(jobId);
    await worker.complete(job);
    await untilEnded(forge.user, jobId);
    expect(Math.abs(times?.assigned_s ?? DAY_S)).toBeLessThan(60);
    expect(Math.abs(times?.started_s ?? DAY_S)).toBeLessThan(60);
    expect(Math.abs((times?.left_s ?? 0) - HOUR_S)).toBeLessThan(60);
    const measured = "select gpu_hours_measured::float8 as hours from attempts where job_id = $1";
    const row = await maybeOne<{ hours: number }>(forge.ctx.pool, measured, [jobId]);
    expect(row?.hours).toBeLessThan(0.05);
  },
  60_000,
);

test("an open transaction delays the recording of a step by a few seconds only", async () => {
  const client = await forge.ctx.pool.connect();
  try {
    await client.query("begin");
    await setClock(DAY_S);
    await untilRecorded(DAY_S);
  } finally {
    await client.query("rollback");
    client.release();
  }
}, 60_000);
