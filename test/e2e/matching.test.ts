/**
 * Compares the scheduler's SQL to its pure model, on random fleets and queues in a real Postgres.
 */

import fc from "fast-check";
import { type HeldWorker, mayRun, type QueuedJob } from "../../core/fleet/matching";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { cpuSeconds } from "../../dev/stack/cpu-time";
import { all, createPool, execute, maybeOne } from "../../platform/postgres/pool";
import { createKey } from "../../services/accounts/keys";
import { assignOnlyJob } from "../../services/fleet/assign-only-job";
import {
  assignOnce,
  findOfferAndFit,
  hasFittingWorker,
  isAnythingQueued,
  type MatchedPair,
} from "../../services/fleet/assignment";
import { blocksRead } from "../support/blocks-read";
import { matchQueue, NO_NEEDS, OWN_WORKER } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import {
  FLEETS,
  type Fleet,
  openSchedulerDatabase,
  QUEUES,
  type SchedulerDatabase,
  TENANTS,
} from "../support/scheduler-database";
import { slowTest } from "../support/slow";

let forge: SchedulerDatabase;

beforeAll(async () => {
  forge = await openSchedulerDatabase();
  await createKey(forge.ctx.pool, { userId: "ann", scope: "user", name: "k", madeByAdmin: false });
});

afterAll(async () => {
  await forge?.stop();
});

const fill = (queue: QueuedJob[], fleet: Fleet): Promise<void> => forge.fill(queue, fleet);
const submit = (queue: QueuedJob[]): Promise<void> => queueJobs(forge.ctx.pool, queue);

/**
 * Assigns one job to each shared worker whose `serves` is set, so that the worker is busy. The job
 * belongs to the tenant that `serves` names.
 */
async function occupy(fleet: Fleet): Promise<HeldWorker[]> {
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
    fc.asyncProperty(QUEUES, FLEETS, rankings, async (queue, fleet, ranked) => {
      await fill([], fleet);
      const held = await occupy(fleet);
      await submit(queue);
      const pairs = [];
      let isLast = false;
      for (;;) {
        const { pairs: pass, isExhaustive } = await assignOnce(forge.ctx.pool, ranked);
        // After a pass with `isExhaustive`, the scheduler makes no other pass. The test makes
        // another one, which must assign nothing.
        expect(isLast && pass.length > 0).toBe(false);
        isLast = isExhaustive;
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
    { numRuns: process.env.TEST_SLOW ? 1_000 : 80 },
  );
}, 120_000);

test("on random fleets and queues, a pass for one worker assigns it the same as the model", async () => {
  await fc.assert(
    fc.asyncProperty(QUEUES, FLEETS, rankings, async (queue, fleet, ranked) => {
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
        const { pairs } = await assignOnce(pool, ranked, { workers: [workerId], groups: wanted });
        const [expected] = matchQueue([...waiting.values()], [each], held, ranked);
        expect(pairs.map((pair) => [pair.job_id, pair.worker_id])).toEqual(
          expected ? [[expected.jobId, expected.workerId]] : [],
        );
        if (!expected) continue;
        const job = waiting.get(expected.jobId);
        waiting.delete(expected.jobId);
        if (each.shared && job) held.push({ ...each, userId: job.userId });
      }
      expect((await assignOnce(pool, ranked)).pairs).toEqual([]);
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 30 },
  );
}, 120_000);

test("on random fleets and queues, passes after submissions assign the same as the model", async () => {
  await fc.assert(
    fc.asyncProperty(QUEUES, FLEETS, rankings, async (queue, fleet, ranked) => {
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
        expect(await hasFittingWorker(pool, groups)).toBe(fitting.length > 0);
        const own = await assignOnce(pool, ranked, { tenant: job.userId, groups });
        expect(own.sharedWorkerFits).toBe(fitting.some((each) => each.shared));
        // Do what the scheduler does: if a shared worker could run the job, run a pass over all
        // tenants instead of the pass over one tenant.
        const { pairs } = own.sharedWorkerFits ? await assignOnce(pool, ranked) : own;
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
      expect((await assignOnce(pool, ranked)).pairs).toEqual([]);
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 30 },
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
    return { ...OWN_WORKER, workerId };
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
  expect(await blocks((one) => hasFittingWorker(one, [group]))).toBeLessThan(200);
  const scopes = [
    { scope: { workers: ["w"], groups: [group] }, most: 200 },
    { scope: { tenant: "ann", groups: [group] }, most: 600 },
  ];
  for (const { scope, most } of scopes) {
    await fillAgain();
    expect(await blocks((one) => assignOnce(one, [], scope))).toBeLessThan(most);
    expect(await all(pool, "select job_id from jobs where status = 'assigned'")).toEqual([
      { job_id: "own" },
    ]);
  }
});

test("a long queue of one tenant, behind many ended jobs, costs the jobs of others nothing", async () => {
  const pool = forge.longStatements;
  const jobsOf = (userId: string, count: number, prefix: string) =>
    Array.from({ length: count }, (_, n) => {
      return { ...NO_NEEDS, jobId: `${prefix}_${n}`, userId, priority: 0, queuedAt: n };
    });
  const fleet = ["ann", "cyd"].map((userId) => ({
    ...OWN_WORKER,
    workerId: `of_${userId}`,
    userId,
  }));
  // Long tags make each row large, so that a small number of rows fills many blocks.
  const others = (count: number, prefix: string) =>
    jobsOf("bob", count, prefix).map((job) => ({ ...job, tags: ["t".repeat(700)] }));
  await fill([], fleet);
  await queueJobs(pool, others(2_000, "ended"));
  await pool.query("update attempts set state = 'ended', outcome = 'cancelled', ended_at = now()");
  // The ended attempts come first in the table, as they do in any installation.
  await pool.query("vacuum full attempts");
  const own = [...jobsOf("ann", 1, "ann"), ...jobsOf("cyd", 2, "cyd")];
  await queueJobs(pool, [...others(1_000, "queued"), ...own]);
  await pool.query("vacuum analyze jobs, attempts, workers");
  const [ofAnn = "", ofCyd = ""] = own
    .slice(0, 2)
    .map((job) => requirementGroupOf(job.userId, job));
  const read = async (work: Parameters<typeof blocksRead>[2]): Promise<number> =>
    await blocksRead(forge, ["attempts"], work);
  const blocks = {
    isAnythingQueued: await read(isAnythingQueued),
    hasFittingWorker: await read((one) => hasFittingWorker(one, [ofAnn])),
    findOfferAndFit: await read((one) => findOfferAndFit(one, "of_ann", "ann")),
    assignOnlyJob: await read((one) => assignOnlyJob(one, "ann", [ofAnn], [])),
    pass: await read((one) => assignOnce(one, [], { tenant: "cyd", groups: [ofCyd] })),
  };
  expect(await all(pool, "select job_id from jobs where status = 'assigned' order by 1")).toEqual([
    { job_id: "ann_0" },
    { job_id: "cyd_0" },
  ]);
  // An assignment updates an attempt in all indexes, which takes 60 blocks. A scan of the table up
  // to the first queued attempt would read 200 blocks.
  const tooMany = Object.entries(blocks).filter(([, count]) => count > 150);
  expect(tooMany).toEqual([]);
});

test("a pass with more idle workers than jobs sees all, and is not taken for a blocked one", async () => {
  const same = { ...NO_NEEDS, userId: "ann" };
  const fleet = ["a", "b", "c"].map((workerId) => {
    return { ...same, workerId, shared: false, jobTypes: null, tenants: null };
  });
  const job = { ...same, jobId: "only", priority: 0, queuedAt: 0 };
  for (const scope of ["", { tenant: "ann", groups: [requirementGroupOf("ann", job)] }]) {
    await fill([job], fleet);
    const pass = await assignOnce(forge.ctx.pool, [], scope);
    expect(pass).toMatchObject({
      pairs: [{ job_id: "only" }],
      isExhaustive: true,
      wasBlocked: false,
    });
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
  // `isExhaustive` is false, because a pass over all tenants compares only some of the 300 kinds of
  // workers. `wasBlocked` is false, because no row was locked. The scheduler repeats a pass that
  // assigned nothing only if `wasBlocked` is true, so it does not repeat this one.
  expect(await assignOnce(pool, [])).toMatchObject({
    pairs: [],
    isExhaustive: false,
    wasBlocked: false,
  });
  for (const n of [0, 7, 150, 298, 299]) {
    const job = { ...same, tags: [`w${n}`], jobId: `fits_${n}`, priority: 0, queuedAt: n };
    await submit([job]);
    const scope = { tenant: "ann", groups: [requirementGroupOf("ann", job)] };
    expect((await assignOnce(pool, [], scope)).pairs).toMatchObject([{ worker_id: `w${n}` }]);
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
  expect((await assignOnce(forge.ctx.pool, [])).pairs).toHaveLength(1);
  await execute(forge.ctx.pool, "update workers set status = 'idle'");
  expect((await assignOnce(forge.ctx.pool, [])).pairs).toEqual([]);
  await execute(
    forge.ctx.pool,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens,
                          status, available_until)
     select 'b', user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, 'idle', available_until
     from workers where worker_id = 'a'`,
  );
  expect((await assignOnce(forge.ctx.pool, [])).pairs).toMatchObject([
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
  // Open as many connections as there are passes, so that all passes run at the same time.
  const options = { connectionString: forge.databaseUrl, max: 50, timeoutMs: 20_000 };
  const pool = createPool(options, forge.ctx.logger);
  await Promise.all(Array.from({ length: 50 }, () => all(pool, "select pg_sleep(0.1)")));
  const passes = await Promise.all(Array.from({ length: 50 }, () => assignOnce(pool, [])));
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
  expect((await assignOnce(forge.ctx.pool, [])).pairs).toEqual([]);
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

// This is the last test, because removing its rows takes long.
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
    // `longStatements` has one connection. Measure the CPU time of its Postgres process, because
    // other tests run at the same time.
    const backend = await maybeOne<{ pid: number }>(
      forge.longStatements,
      "select pg_backend_pid() as pid",
    );
    const pid = backend?.pid ?? 0;
    for (;;) {
      const spent = cpuSeconds(pid);
      const { pairs: more } = await assignOnce(forge.longStatements, []);
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
