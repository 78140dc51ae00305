import { all, execute } from "../../platform/postgres/pool";
import { ensureUser } from "../../services/accounts/users";
import { assignOnce, findOfferAndFit, type Pass } from "../../services/fleet/assignment";
import { Scheduler } from "../../services/fleet/scheduler";
import { type Database, openDatabase } from "../support/database";
import { NO_NEEDS } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";

/**
 * One pass of the scheduler reads at most READ requirement groups. The test queues GROUPS of them.
 * No server runs, so only the test makes passes.
 */
const READ = 2_000;
const GROUPS = 4_100;
const WORKERS = 6;
/**
 * Job number n needs LEAST_GB + n GB, so each job has its own requirement group. Groups are ordered
 * as text, so all these numbers must have five digits to be in the order of the jobs.
 */
const LEAST_GB = 10_000;

let forge: Database;

beforeAll(async () => {
  forge = await openDatabase();
  const { pool } = forge.ctx;
  for (const id of ["ann", "zed"]) await ensureUser(pool, id, id);
  const many = Array.from({ length: GROUPS }, (_, n) => {
    const needs = { ...NO_NEEDS, gpuCount: 1, memoryGb: LEAST_GB + n };
    return { ...needs, jobId: `ann_${n}`, userId: "ann", priority: 0, queuedAt: n };
  });
  await queueJobs(pool, many.slice(0, READ));
  await queueJobs(pool, many.slice(READ));
  const zed = { ...NO_NEEDS, jobId: "zed", userId: "zed", priority: 0, queuedAt: GROUPS };
  await queueJobs(pool, [zed]);
  await execute(
    pool,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status)
     select 'w' || n, 'ann', true, 'gpu', 1, ${LEAST_GB + GROUPS}, '{}', 'idle'
     from generate_series(1, ${WORKERS}) n`,
  );
  await pool.query("vacuum analyze jobs, attempts, workers");
}, 60_000);

afterAll(async () => {
  await forge?.stop();
});

test("a pass reads a limited number of groups, and the next one goes on after them", async () => {
  const seen: (string | undefined)[] = [];
  for (let after: string | undefined = ""; after !== undefined && seen.length < 5; ) {
    const { pairs, next }: Pass = await assignOnce(forge.ctx.pool, [], after);
    expect(pairs).toEqual([]);
    seen.push(next);
    after = next;
  }
  const lasts = seen.map((group) => Number(group?.match(/\d{5}/)?.[0]) - LEAST_GB);
  expect(lasts).toEqual([READ - 1, 2 * READ - 1, Number.NaN]);
});

test("workers that become available one by one get jobs of all groups in turn, not of the first ones only", async () => {
  const { ctx } = forge;
  const scheduler = new Scheduler(ctx);
  for (let n = 1; n <= WORKERS; n++) {
    await execute(
      ctx.pool,
      "update workers set available_until = now() + interval '1 minute' where worker_id = $1",
      [`w${n}`],
    );
    const offer = await findOfferAndFit(ctx.pool, `w${n}`, "ann");
    await scheduler.assignTo(`w${n}`, offer?.wanted ?? null);
  }
  const given = await all<{ job_id: string }>(
    ctx.pool,
    "select job_id from attempts where state = 'assigned' order by worker_id",
  );
  // For the third worker, the scheduler reads the last part of the groups. In that part, Zed's job
  // comes first, because Zed uses fewer workers than Ann.
  expect(given[2]).toEqual({ job_id: "zed" });
  const parts = given.map(({ job_id: id }) =>
    id === "zed" ? 2 : Math.floor(Number(id.slice("ann_".length)) / READ),
  );
  expect(parts).toEqual([0, 1, 2, 0, 1, 2]);
});
