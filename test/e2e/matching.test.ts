/**
 * Compares the scheduler's SQL to its pure model, on random fleets and queues in a real Postgres.
 */

import fc from "fast-check";
import pg from "pg";
import { type FleetWorker, type Holding, mayRun, type QueuedJob } from "../../core/fleet/matching";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { cpuSeconds } from "../../dev/stack/cpu-time";
import { all, createPool, execute, maybeOne } from "../../platform/postgres/pool";
import { createKey } from "../../services/accounts/keys";
import { ensureUser } from "../../services/accounts/users";
import {
  findOfferAndFit,
  hasTaker,
  type MatchedPair,
  matchOnce,
} from "../../services/fleet/matching";
import { markProvisioning } from "../../services/fleet/provisioning";
import { blocksRead } from "../support/blocks-read";
import { type Database, openDatabase } from "../support/database";
import { matchQueue, NO_NEEDS } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import { slowTest } from "../support/slow";

let forge: Database;
/** One connection whose statements may take a minute. */
let patient: pg.Pool;
const TENANTS = ["ann", "bob", "cyd"];

beforeAll(async () => {
  forge = await openDatabase();
  for (const tenant of TENANTS) await ensureUser(forge.ctx.pool, tenant, tenant);
  patient = createPool(
    { connectionString: forge.databaseUrl, max: 1, timeoutMs: 60_000 },
    forge.ctx.logger,
  );
  await createKey(forge.ctx.pool, { userId: "ann", scope: "user", name: "k", madeByAdmin: false });
});

afterAll(async () => {
  await patient?.end();
  await forge?.stop();
});

const needs = {
  gpuCount: fc.constantFrom(0, 0, 1, 2),
  gpuTokens: fc.subarray(["a100", "80gb"]),
  memoryGb: fc.constantFrom(0, 0, 40, 80),
  tags: fc.subarray(["eu"]),
};
const job = fc.record({
  jobType: fc.constantFrom("audit" as const, "train" as const),
  userId: fc.constantFrom(...TENANTS),
  priority: fc.integer({ min: -1, max: 1 }),
  queuedAt: fc.integer({ min: 0, max: 5 }),
  avoid: fc.subarray(["w0", "w1", "w2"]),
  ...needs,
});
const worker = fc.record({
  userId: fc.constantFrom(...TENANTS),
  shared: fc.boolean(),
  jobTypes: fc.option(fc.subarray(["audit", "train"]), { freq: 3 }),
  tenants: fc.option(fc.subarray(TENANTS), { freq: 3 }),
  gpuCount: fc.constantFrom(0, 1, 2, 8),
  gpuTokens: fc.subarray(["a100", "80gb", "nvidia"]),
  memoryGb: fc.constantFrom(0, 40, 75, 77, 80),
  tags: fc.subarray(["eu", "us"]),
  /** The tenant that a shared worker already works for. */
  serves: fc.option(fc.constantFrom(...TENANTS), { freq: 2 }),
});
const queues = fc
  .array(job, { maxLength: 12 })
  .map((jobs) => jobs.map((each, n): QueuedJob => ({ ...each, jobId: `job_${n}` })));
const fleets = fc
  .array(worker, { maxLength: 12 })
  .map((workers) => workers.map((each, n) => ({ ...each, workerId: `w${n}` })));

type Fleet = (FleetWorker & { serves?: string | null })[];

async function fill(queue: QueuedJob[], fleet: Fleet): Promise<void> {
  const { pool } = forge.ctx;
  // Delete rows instead of truncating the tables: this runs a thousand times, and truncating would
  // sync files each time. Use `patient`, because deleting thousands of rows can exceed the other
  // pool's statement timeout.
  await patient.query(
    "delete from outbox; delete from job_events; delete from attempts; delete from jobs; delete from workers",
  );
  await execute(
    pool,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens,
                          tags, job_types, tenants, status, available_until)
     select w->>'workerId', w->>'userId', (w->>'shared')::bool, 'gpu', (w->>'gpuCount')::int,
            (w->>'memoryGb')::int, array(select jsonb_array_elements_text(w->'gpuTokens')),
            array(select jsonb_array_elements_text(w->'tags')),
            case when jsonb_typeof(w->'jobTypes') = 'array'
              then array(select jsonb_array_elements_text(w->'jobTypes')) end,
            case when jsonb_typeof(w->'tenants') = 'array'
              then array(select jsonb_array_elements_text(w->'tenants')) end, 'idle', now() + interval '1 hour'
     from jsonb_array_elements($1::jsonb) as each(w)`,
    [JSON.stringify(fleet)],
  );
  await submit(queue);
}

const submit = (queue: QueuedJob[]): Promise<void> => queueJobs(forge.ctx.pool, queue);

/** Makes shared workers busy: assigns one job to each. */
async function occupy(fleet: Fleet): Promise<Holding[]> {
  const { pool } = forge.ctx;
  const busy = fleet.filter((each) => each.shared && each.serves);
  for (const { workerId, serves } of busy) {
    const jobId = `holding_${workerId}`;
    await submit([{ ...NO_NEEDS, jobId, userId: serves ?? "", priority: 0, queuedAt: 0 }]);
    await execute(
      pool,
      `update attempts set state = 'assigned', worker_id = $2, shared_for = $3 where job_id = $1`,
      [jobId, workerId, serves],
    );
    await execute(pool, "update workers set status = 'busy' where worker_id = $1", [workerId]);
  }
  return busy.map((each) => ({ ...each, userId: each.serves ?? "" }));
}

const rankings = fc.constantFrom([], [], ["ann"], ["ann", "bob"], ["*"]);

test("on random fleets and queues, passes assign the same as the model", async () => {
  await fc.assert(
    fc.asyncProperty(queues, fleets, rankings, async (queue, fleet, ranked) => {
      await fill([], fleet);
      const held = await occupy(fleet);
      await submit(queue);
      const pairs = [];
      let isLast = false;
      for (;;) {
        const { pairs: pass, sawAll } = await matchOnce(forge.ctx.pool, ranked);
        // The scheduler makes no further pass after a pass with `sawAll`, so a further pass must
        // assign nothing.
        expect(isLast && pass.length > 0).toBe(false);
        isLast = sawAll;
        if (pass.length === 0) break;
        pairs.push(...pass);
      }
      // There are so few workers that one pass considers all of them.
      expect(isLast).toBe(true);
      const assigned = pairs.map((pair) => [pair.job_id, pair.worker_id]).sort();
      const idle = fleet.filter((each) => !(each.shared && each.serves));
      const expected = matchQueue(queue, idle, held, ranked).map((pair) => [
        pair.jobId,
        pair.workerId,
      ]);
      expect(assigned).toEqual(expected.sort());
    }),
    { numRuns: process.env.TEST_SLOW ? 1_000 : 150 },
  );
}, 120_000);

test("on random fleets and queues, a pass for one worker assigns it the same as the model", async () => {
  await fc.assert(
    fc.asyncProperty(queues, fleets, rankings, async (queue, fleet, ranked) => {
      const { pool } = forge.ctx;
      await fill([], fleet);
      const held = await occupy(fleet);
      await submit(queue);
      const waiting = new Map(queue.map((each) => [each.jobId, each]));
      for (const each of fleet.filter(({ shared, serves }) => !(shared && serves))) {
        const { workerId, userId } = each;
        const fitting = [...waiting.values()].filter((job) => mayRun(job, each));
        const groups = new Set(fitting.map((job) => requirementGroupOf(job.userId, job)));
        const wanted = (await findOfferAndFit(pool, workerId, userId))?.wanted ?? [];
        expect(new Set(wanted)).toEqual(groups);
        const { pairs } = await matchOnce(pool, ranked, { workers: [workerId], groups: wanted });
        const [expected] = matchQueue([...waiting.values()], [each], held, ranked);
        expect(pairs.map((pair) => [pair.job_id, pair.worker_id])).toEqual(
          expected ? [[expected.jobId, expected.workerId]] : [],
        );
        if (!expected) continue;
        const job = waiting.get(expected.jobId);
        waiting.delete(expected.jobId);
        if (each.shared && job) held.push({ ...each, userId: job.userId });
      }
      expect((await matchOnce(pool, ranked)).pairs).toEqual([]);
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 60 },
  );
}, 120_000);

test("on random fleets and queues, passes after submissions assign the same as the model", async () => {
  await fc.assert(
    fc.asyncProperty(queues, fleets, rankings, async (queue, fleet, ranked) => {
      const { pool } = forge.ctx;
      await fill([], fleet);
      const held = await occupy(fleet);
      const idle = new Map(
        fleet.filter((each) => !(each.shared && each.serves)).map((each) => [each.workerId, each]),
      );
      for (const job of queue) {
        await submit([job]);
        const fitting = [...idle.values()].filter((each) => mayRun(job, each));
        const groups = [requirementGroupOf(job.userId, job)];
        expect(await hasTaker(pool, groups)).toBe(fitting.length > 0);
        const own = await matchOnce(pool, ranked, { tenant: job.userId, groups });
        expect(own.isShared).toBe(fitting.some((each) => each.shared));
        // Like the scheduler: if a shared worker fits, run a pass over all tenants instead of the
        // pass over one tenant.
        const { pairs } = own.isShared ? await matchOnce(pool, ranked) : own;
        const expected = matchQueue([job], [...idle.values()], held, ranked);
        expect(pairs.map((pair) => [pair.job_id, pair.worker_id])).toEqual(
          expected.map((pair) => [pair.jobId, pair.workerId]),
        );
        for (const { workerId } of expected) {
          const worker = idle.get(workerId);
          idle.delete(workerId);
          if (worker?.shared) held.push({ ...worker, userId: job.userId });
        }
      }
      expect((await matchOnce(pool, ranked)).pairs).toEqual([]);
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 60 },
  );
}, 120_000);

test("what others have queued costs a worker's poll and a submission nothing", async () => {
  const { pool } = forge.ctx;
  const others = Array.from({ length: 2_000 }, (_, n) => {
    const tags = [`t${n}`];
    return { ...NO_NEEDS, tags, jobId: `bob_${n}`, userId: "bob", priority: 0, queuedAt: n };
  });
  const own = { ...NO_NEEDS, jobId: "own", userId: "ann", priority: 0, queuedAt: 0 };
  const fleet = ["w", "second"].map((workerId) => {
    return { ...NO_NEEDS, workerId, userId: "ann", shared: false, jobTypes: null, tenants: null };
  });
  const fillAgain = async (): Promise<void> => {
    await fill([...others, own], fleet);
    await pool.query("vacuum analyze jobs, attempts, workers");
  };
  await fillAgain();
  const group = requirementGroupOf("ann", own);
  // Reading the groups of the other tenant would take thousands of blocks.
  const read = ["jobs", "attempts"];
  const blocks = async (work: Parameters<typeof blocksRead>[2]): Promise<number> =>
    await blocksRead(forge, read, work);
  expect(await blocks((one) => findOfferAndFit(one, "w", "ann"))).toBeLessThan(200);
  expect(await findOfferAndFit(pool, "w", "ann")).toMatchObject({ wanted: [group] });
  expect(await blocks((one) => hasTaker(one, [group]))).toBeLessThan(200);
  const scopes = [
    { scope: { workers: ["w"], groups: [group] }, most: 200 },
    { scope: { tenant: "ann", groups: [group] }, most: 600 },
  ];
  for (const { scope, most } of scopes) {
    await fillAgain();
    expect(await blocks((one) => matchOnce(one, [], scope))).toBeLessThan(most);
    expect(await all(pool, "select job_id from jobs where status = 'assigned'")).toEqual([
      { job_id: "own" },
    ]);
  }
});

test("a tenant whose workers are all different gets a job to the one that fits, and causes no pass over everything", async () => {
  const { pool } = forge.ctx;
  const same = { ...NO_NEEDS, userId: "ann" };
  const fleet = Array.from({ length: 300 }, (_, n) => {
    const workerId = `w${n}`;
    return { ...same, workerId, tags: [workerId], shared: false, jobTypes: null, tenants: null };
  });
  const none = { ...same, tags: ["none"], jobId: "fits_none", priority: 0, queuedAt: 0 };
  await fill([none], fleet);
  // A full pass considers only some of the 300 kinds of workers, so `sawAll` is false. `wasBlocked`
  // is false, so the scheduler does not repeat the pass.
  expect(await matchOnce(pool, [])).toMatchObject({ pairs: [], sawAll: false, wasBlocked: false });
  for (const n of [0, 7, 150, 298, 299]) {
    const job = { ...same, tags: [`w${n}`], jobId: `fits_${n}`, priority: 0, queuedAt: n };
    await submit([job]);
    const scope = { tenant: "ann", groups: [requirementGroupOf("ann", job)] };
    expect((await matchOnce(pool, [], scope)).pairs).toMatchObject([{ worker_id: `w${n}` }]);
  }
});

test("a worker that has an attempt gets no other, whatever its status", async () => {
  const same = { ...NO_NEEDS, userId: "ann" };
  const queue = [1, 2, 3].map((n) => ({ ...same, jobId: `job_${n}`, priority: 0, queuedAt: n }));
  const fleet = ["a", "b"].map((workerId) => ({
    ...same,
    workerId,
    shared: false,
    jobTypes: null,
    tenants: null,
  }));
  await fill(queue, fleet.slice(0, 1));
  expect((await matchOnce(forge.ctx.pool, [])).pairs).toHaveLength(1);
  await execute(forge.ctx.pool, "update workers set status = 'idle'");
  expect((await matchOnce(forge.ctx.pool, [])).pairs).toEqual([]);
  await execute(
    forge.ctx.pool,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens,
                          status, available_until)
     select 'b', user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, 'idle', available_until
     from workers where worker_id = 'a'`,
  );
  expect((await matchOnce(forge.ctx.pool, [])).pairs).toMatchObject([
    { job_id: "job_2", worker_id: "b" },
  ]);
});

test("fifty matchers at once break no rule: tenancy, capability, one job a worker, one worker a job", async () => {
  const of = <T>(values: T[], n: number): T => values[n % values.length] as T;
  const queue = Array.from({ length: 150 }, (_, n) => ({
    jobId: `job_${n}`,
    userId: of(TENANTS, n),
    jobType: "audit" as const,
    priority: n % 2,
    queuedAt: n,
    gpuCount: of([0, 0, 1, 2], n),
    gpuTokens: of([[], [], ["a100"]], n),
    memoryGb: of([0, 40], n),
    tags: of([[], [], [], ["eu"]], n),
    avoid: of([[], [], [`w${n % 100}`]], n),
  }));
  const fleet = Array.from({ length: 100 }, (_, n) => ({
    workerId: `w${n}`,
    userId: of(TENANTS, n + 1),
    shared: n % 3 === 0,
    jobTypes: null,
    tenants: null,
    gpuCount: of([0, 1, 2, 8], n),
    gpuTokens: of([["a100", "nvidia"], ["nvidia"]], n),
    memoryGb: of([80, 40], n),
    tags: of([["eu"], []], n),
  }));
  await fill(queue, fleet);
  // As many connections as matchers, so that all run at once.
  const options = { connectionString: forge.databaseUrl, max: 50, timeoutMs: 20_000 };
  const pool = createPool(options, forge.ctx.logger);
  await Promise.all(Array.from({ length: 50 }, () => all(pool, "select pg_sleep(0.1)")));
  const passes = await Promise.all(Array.from({ length: 50 }, () => matchOnce(pool, [])));
  await pool.end();
  const pairs = passes.flatMap((pass) => pass.pairs);
  expect(pairs.length).toBeGreaterThan(50);
  expect(new Set(pairs.map((pair) => pair.worker_id)).size).toBe(pairs.length);
  expect(new Set(pairs.map((pair) => pair.job_id)).size).toBe(pairs.length);
  for (const { job_id, worker_id } of pairs) {
    const job = queue.find((each) => each.jobId === job_id);
    const worker = fleet.find((each) => each.workerId === worker_id);
    expect(job && worker && mayRun(job, worker)).toBe(true);
  }
  expect((await matchOnce(forge.ctx.pool, [])).pairs).toEqual([]);
  // No job is left waiting while a suitable worker is idle.
  const waiting = queue.filter((job) => !pairs.some((pair) => pair.job_id === job.jobId));
  const idle = fleet.filter((worker) => !pairs.some((pair) => pair.worker_id === worker.workerId));
  expect(waiting.filter((job) => idle.some((worker) => mayRun(job, worker)))).toEqual([]);
  const rows = await all<{ n: number }>(
    forge.ctx.pool,
    `select count(*) as n from attempts a join jobs j using (job_id)
     join workers w on w.worker_id = a.worker_id
     where a.state = 'assigned' and j.status = 'assigned' and w.status = 'busy'
       and j.worker_id = a.worker_id and (a.shared_for is not null) = w.shared`,
  );
  expect(rows[0]?.n).toBe(pairs.length);
});

test("jobs that wait for a worker being set up show it, however many they are, until the worker is gone", async () => {
  const queue = Array.from({ length: 1_200 }, (_, n) => {
    return { ...NO_NEEDS, jobId: `job_${n}`, userId: "ann", priority: 0, queuedAt: n };
  });
  await fill(queue, [
    { ...NO_NEEDS, workerId: "w", userId: "ann", shared: false, jobTypes: null, tenants: null },
  ]);
  const statuses = async (): Promise<unknown> =>
    await all(forge.ctx.pool, "select status, count(*) as n from jobs group by status");
  await execute(forge.ctx.pool, "update workers set status = 'bootstrapping'");
  await execute(
    forge.ctx.pool,
    `create function refuse_many() returns trigger language plpgsql as $$ begin
       if (select count(*) from moved) > 500 then raise 'too many jobs in one statement'; end if;
       return null;
     end $$`,
  );
  await execute(
    forge.ctx.pool,
    `create trigger refuse_many after update on jobs referencing new table as moved
     for each statement execute function refuse_many()`,
  );
  // `markProvisioning` does not wait for a row that another transaction has locked. A later call
  // changes the row.
  const holder = new pg.Client({ connectionString: forge.databaseUrl });
  await holder.connect();
  try {
    await holder.query("begin; select from jobs where job_id = 'job_999' for no key update");
    expect(await markProvisioning(forge.ctx.pool)).toBe("");
  } finally {
    await holder.end();
  }
  expect(await statuses()).toEqual(
    expect.arrayContaining([
      { status: "provisioning_worker", n: 1_199 },
      { status: "pending", n: 1 },
    ]),
  );
  await markProvisioning(forge.ctx.pool);
  expect(await statuses()).toEqual([{ status: "provisioning_worker", n: 1_200 }]);
  await execute(forge.ctx.pool, "update workers set status = 'dead'");
  await markProvisioning(forge.ctx.pool);
  expect(await statuses()).toEqual([{ status: "pending", n: 1_200 }]);
  await execute(forge.ctx.pool, "drop function refuse_many cascade");
});

test("with more requirement groups than one call reads, the next call goes on after them", async () => {
  const { pool } = forge.ctx;
  const queue = Array.from({ length: 5_100 }, (_, n) => {
    const needs = { ...NO_NEEDS, memoryGb: n };
    return { ...needs, jobId: `job_${n}`, userId: "ann", priority: 0, queuedAt: n };
  });
  const large = { ...NO_NEEDS, memoryGb: 10_000, workerId: "w", jobTypes: null, tenants: null };
  await fill(queue, [{ ...large, userId: "ann", shared: false }]);
  await execute(pool, "update workers set status = 'bootstrapping'");
  const left = "select count(*) as n from jobs where status = 'pending'";
  // The first call changes 5,000 jobs, the most for one call. It returns "", so that the next call
  // starts at the first group again.
  expect(await markProvisioning(pool)).toBe("");
  expect(await all(pool, left)).toEqual([{ n: 100 }]);
  const after = await markProvisioning(pool);
  expect(await all(pool, left)).toEqual([{ n: 0 }]);
  expect(after).not.toBe("");
  expect(await markProvisioning(pool, after)).toBe("");
}, 60_000);

test("on random fleets and queues, the same jobs as in the model wait for a worker being set up", async () => {
  const statuses = fc.array(
    fc.constantFrom("bootstrapping", "idle", "busy", "draining", "dead", "error"),
    {
      minLength: 12,
      maxLength: 12,
    },
  );
  // Each change starts from the state that the change before left.
  const changes = fc.array(statuses, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(queues, fleets, changes, async (queue, fleet, rounds) => {
      await fill(queue, fleet);
      for (const round of rounds) {
        await execute(
          forge.ctx.pool,
          `update workers w set status = case s when 'draining' then 'idle' else s end, draining = s = 'draining',
                  error_code = case s when 'error' then 'bootstrap_failed' end
           from unnest($1::text[]) with ordinality round (s, n) where w.worker_id = 'w' || n - 1`,
          [round],
        );
        expect(await markProvisioning(forge.ctx.pool)).toBe("");
        const fitsOne = (job: QueuedJob, ...of: string[]): boolean =>
          fleet.some((each, n) => of.includes(round[n] ?? "") && mayRun(job, each));
        const expected = queue
          .filter((job) => fitsOne(job, "bootstrapping") && !fitsOne(job, "idle", "busy"))
          .map((job) => ({ job_id: job.jobId, is_provisioning: true }));
        const marked = await all(
          forge.ctx.pool,
          `select job_id, is_provisioning from jobs join attempts using (job_id)
           where status = 'provisioning_worker' or is_provisioning order by length(job_id), job_id`,
        );
        expect(marked).toEqual(expected);
      }
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 60 },
  );
}, 60_000);

test("a revoked assignment no longer waits for a worker being set up", async () => {
  const { pool } = forge.ctx;
  await fill(
    [{ ...NO_NEEDS, jobId: "job", userId: "ann", priority: 0, queuedAt: 0 }],
    [{ ...NO_NEEDS, workerId: "w", userId: "ann", shared: false, jobTypes: null, tenants: null }],
  );
  // Set only the job's status, as a server of the previous release would: it does not know the
  // attempt's column `is_provisioning`.
  await execute(pool, "update jobs set status = 'provisioning_worker'");
  expect((await matchOnce(pool, [])).pairs).toHaveLength(1);
  await execute(pool, "update attempts set state = 'queued', worker_id = null");
  await execute(pool, "update jobs set status = 'pending', worker_id = null");
  expect(await all(pool, "select is_provisioning from attempts")).toEqual([
    { is_provisioning: false },
  ]);
});

test("the tenants whose jobs wait for a worker being set up are found without reading the queue", async () => {
  const waiting = Array.from({ length: 5_000 }, (_, n) => {
    return { ...NO_NEEDS, jobId: `ann_${n}`, userId: "ann", priority: 0, queuedAt: n };
  });
  // Jobs of a tenant that can't use that worker.
  const others = waiting.map((job, n) => ({ ...job, jobId: `bob_${n}`, userId: "bob" }));
  await fill(
    [...waiting, ...others],
    [{ ...NO_NEEDS, workerId: "w", userId: "ann", shared: false, jobTypes: null, tenants: null }],
  );
  const { pool } = forge.ctx;
  await execute(pool, "update workers set status = 'bootstrapping'");
  for (let after: string | undefined; after !== ""; ) after = await markProvisioning(pool, after);
  await pool.query("vacuum analyze jobs, attempts, workers");
  expect(
    await blocksRead(forge, ["jobs", "attempts"], (one) => markProvisioning(one)),
  ).toBeLessThan(100);
  const marked = "select count(*) as n from jobs where status = 'provisioning_worker'";
  expect(await all(pool, marked)).toEqual([{ n: 5_000 }]);
}, 60_000);

// Last, because removing so many rows takes long.
slowTest(
  "queues of a thousand tenants and idle shared workers: each pass is short, and each tenant gets one worker",
  async () => {
    const tenants = Array.from({ length: 1_000 }, (_, n) => `tenant_${n}`);
    await execute(
      forge.ctx.pool,
      "insert into users (user_id, name) select id, id from unnest($1::text[]) id on conflict do nothing",
      [tenants],
    );
    await fill(
      [],
      Array.from({ length: 50 }, (_, n) => {
        return {
          ...NO_NEEDS,
          workerId: `w${n}`,
          userId: "ann",
          shared: true,
          jobTypes: null,
          tenants: null,
        };
      }),
    );
    const queue = tenants.flatMap((userId) =>
      Array.from({ length: 50 }, (_, n) => {
        return { ...NO_NEEDS, jobId: `${userId}_${n}`, userId, priority: 0, queuedAt: n };
      }),
    );
    for (let from = 0; from < queue.length; from += 5_000)
      await submit(queue.slice(from, from + 5_000));
    await execute(forge.ctx.pool, "analyze attempts, jobs, workers");
    const pairs: MatchedPair[] = [];
    let slowestMs = 0;
    // `patient` has one connection. Measure the CPU time of its Postgres process, because other
    // tests run at the same time.
    const backend = await maybeOne<{ pid: number }>(patient, "select pg_backend_pid() as pid");
    const pid = backend?.pid ?? 0;
    for (;;) {
      const spent = cpuSeconds(pid);
      const { pairs: more } = await matchOnce(patient, []);
      slowestMs = Math.max(slowestMs, (cpuSeconds(pid) - spent) * 1000);
      if (more.length === 0) break;
      pairs.push(...more);
    }
    expect(pairs).toHaveLength(50);
    expect(new Set(pairs.map((pair) => pair.job_id.split("_")[1])).size).toBe(50);
    expect(slowestMs).toBeLessThan(1_000);
  },
  120_000,
);
