import type pg from "pg";
import { ensureUser } from "../../services/accounts/users";
import { BlocksPerJob } from "../support/blocks-per-job";
import { NO_NEEDS } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import { startServersOnly } from "../support/server-process";
import { createTestPool } from "../support/test-pool";
import type { TestStack } from "../support/test-stack";

/** The number of ended jobs, and the number of queued jobs, of another tenant. */
const ENDED = 10_000;
const QUEUED = 10_000;

let servers: TestStack;
let pool: pg.Pool;
let perJob: BlocksPerJob;

beforeAll(async () => {
  // Run the server in its own process, so that `measure` can stop it. This ends the server's
  // connections to Postgres. Some connections don't report the blocks that they have read until
  // they end.
  servers = await startServersOnly(["server"]);
  pool = createTestPool(servers.stack.databaseUrl, 1);
  perJob = new BlocksPerJob(servers, pool);
  await ensureUser(pool, "bob", "bob");
});

afterAll(async () => {
  await pool?.end();
  await servers?.end();
});

test("what a job reads does not grow with the ended and queued jobs of others, even before ANALYZE has seen them", async () => {
  const jobs = (count: number, name: string) =>
    Array.from({ length: count }, (_, n) => {
      const tags = ["nowhere"];
      return { ...NO_NEEDS, tags, jobId: `${name}_${n}`, userId: "bob", priority: 0, queuedAt: n };
    });
  // Turn autovacuum off, so that Postgres plans with old statistics. It also does so right after a
  // queue has grown.
  for (const table of ["jobs", "attempts", "job_events", "artifacts", "billing_records"]) {
    await pool.query(`alter table ${table} set (autovacuum_enabled = false)`);
  }
  const blocks: Record<string, number> = { empty: await perJob.measure() };
  await queueJobs(pool, jobs(ENDED, "ended"));
  await pool.query(
    `update attempts set state = 'ended', outcome = 'completed', started_at = now(), ended_at = now()
     where job_id like 'ended%'`,
  );
  await pool.query(
    "update jobs set status = 'completed', result = '{}', completed_at = now() where job_id like 'ended%'",
  );
  blocks.ended = await perJob.measure();
  await pool.query("vacuum analyze");
  await queueJobs(pool, jobs(QUEUED, "queued"));
  blocks.queued = await perJob.measure();
  await pool.query("vacuum analyze");
  blocks.analyzed = await perJob.measure();
  // Normally, each count is between 650 and 1,100 blocks per job. This includes the blocks that
  // background sweeps read while the jobs run. A statement that reads all rows of the queue for
  // each job would add 2,000 blocks.
  const tooMany = Object.entries(blocks).filter(([, count]) => count > 2_500);
  expect(tooMany).toEqual([]);
}, 300_000);
