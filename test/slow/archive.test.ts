/**
 * Ten million archived jobs. Needs 25 GB in the folder of temporary files. Uses a Postgres of its
 * own, because a database of this size would slow down other tests.
 */
import type pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { ensureUser } from "../../services/accounts/users";
import { countJobs } from "../../services/jobs/job-counts";
import { listJobs } from "../../services/jobs/job-list";
import { findJob } from "../../services/jobs/jobs";
import { copyJob } from "../support/archived-copies";
import { BlocksPerJob } from "../support/blocks-per-job";
import { blocksReadSoFar } from "../support/blocks-read";
import { startServersOnly } from "../support/server-process";
import { createTestPool } from "../support/test-pool";
import type { TestStack } from "../support/test-stack";

const ARCHIVED = 10_000_000;
/** Jobs that a server archives during the test. */
const ENDED = 20_000;
const TENANTS = Array.from({ length: 100 }, (_, n) => `tenant${n}`);
const MINUTE_MS = 60_000;

let servers: TestStack;
let pool: pg.Pool;

beforeAll(async () => {
  servers = await startServersOnly(["server", "postgres"]);
  pool = createTestPool(servers.stack.databaseUrl, 1);
}, MINUTE_MS);

afterAll(async () => {
  await pool?.end();
  await servers?.end();
}, MINUTE_MS);

test(
  "neither jobs nor lists read more because of ten million archived jobs",
  async () => {
    const { stack } = servers;
    const perJob = new BlocksPerJob(servers, pool);
    for (const tenant of TENANTS) await ensureUser(pool, tenant, tenant);
    // Ignore this result: the call only inserts a few jobs, so that the next ANALYZE sees a small
    // table `jobs`, like the ANALYZE before `full`. If it saw an empty table, the query plans of
    // `empty` and `full` could differ, because Postgres reads a small table as a whole.
    await perJob.measure();
    await pool.query("vacuum analyze");
    const empty = await perJob.measure();
    const { rows } = await pool.query("select job_id from jobs order by job_id limit 1");
    const { job_id: jobId } = rows[0];
    const url = stack.databaseUrl;
    await copyJob(url, jobId, { count: ARCHIVED, tenants: TENANTS, archived: true });
    await pool.query("vacuum analyze");
    const full = await perJob.measure();
    const [tenant = ""] = TENANTS;
    const reads = {
      page: await blocksOf(() => listJobs(pool, tenant, {}, { limit: 50 })),
      laterPage: await blocksOf(() => listJobs(pool, tenant, {}, { limit: 50, after: MIDDLE })),
      unfinished: await blocksOf(() =>
        listJobs(pool, tenant, { statuses: ["running"] }, { limit: 50 }),
      ),
      job: await blocksOf(() => findJob(pool, `job_0${"5".padStart(25, "0")}`, null)),
      counts: await blocksOf(() => countJobs(pool, tenant, TWO_DAYS_AGO)),
    };
    process.stderr.write(`blocks: ${JSON.stringify({ empty, full, reads })}\n`);
    // To run a job, servers search the archive only when they look up the job's state. This must
    // not read many more blocks when the archive is full.
    expect(full).toBeLessThan(1.3 * empty);
    // A page of 50 jobs reads 51 rows, to learn whether there are more. For each row, it also looks
    // for a bill and for an artifact. The limit is 12 blocks per row.
    expect(reads.page).toBeLessThan(51 * 12);
    expect(reads.laterPage).toBeLessThan(51 * 12);
    for (const read of [reads.unfinished, reads.job, reads.counts]) expect(read).toBeLessThan(50);

    await copyJob(url, jobId, { count: ENDED, tenants: TENANTS, archived: false });
    await pool.query("update migrations set applied_at = now() - interval '8 days'");
    await stack.startServer({
      FORGE_ARCHIVE_AFTER_S: "1",
      FORGE_SWEEP_AFTER_S: "1",
      FORGE_SWEEP_INTERVAL_S: "0.5",
    });
    await waitFor("all jobs to be archived", async () => (await countIn("jobs")) === 0, {
      timeoutMs: 2 * MINUTE_MS,
    });
    expect(await countIn("attempts")).toBe(0);
    await stack.server?.stop();
  },
  40 * MINUTE_MS,
);

/** More than 500 archived jobs of each tenant ended after this time. */
const TWO_DAYS_AGO = new Date(Date.now() - 2 * 24 * 60 * MINUTE_MS).toISOString();
const MIDDLE = { createdUs: (Date.now() - 100 * 24 * 60 * MINUTE_MS) * 1_000, id: "job_" };

/** The blocks that `read` reads, on the pool's only connection. */
async function blocksOf(read: () => Promise<unknown>): Promise<number> {
  const before = await blocksReadSoFar(pool, null);
  await read();
  return (await blocksReadSoFar(pool, null)) - before;
}

async function countIn(table: string): Promise<number> {
  const { rows } = await pool.query(`select count(*)::int as n from ${table}`);
  return rows[0].n;
}
