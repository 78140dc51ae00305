import pg from "pg";
import { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { ensureUser } from "../../services/accounts/users";
import { blocksReadSoFar } from "../support/blocks-read";
import { AUDIT, untilEnded } from "../support/jobs";
import { NO_NEEDS } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import { startServersOnly } from "../support/server-process";
import type { TestStack } from "../support/test-stack";
import { TestWorker } from "../support/test-worker";

/** Numbers of jobs of another tenant. */
const ENDED = 10_000;
const QUEUED = 10_000;

let servers: TestStack;
let pool: pg.Pool;

beforeAll(async () => {
  // A process of its own, whose connections end with it.
  servers = await startServersOnly(["server"]);
  pool = new pg.Pool({ connectionString: servers.stack.databaseUrl, max: 1 });
  await ensureUser(pool, "bob", "bob");
});

afterAll(async () => {
  await pool?.end();
  await servers?.end();
});

/** The blocks of tables and indexes that all connections have read so far. */
async function blocksRead(): Promise<number> {
  await waitFor("the connections of the last server to have ended", async () => {
    const { rows } = await pool.query(
      "select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    return rows.length === 0;
  });
  return await blocksReadSoFar(pool, null);
}

/** Runs jobs, one after the other, on a new server. Returns the blocks that the server has read. */
async function blocksFor(jobs: number): Promise<number> {
  const { stack } = servers;
  const before = await blocksRead();
  // The reconciler would start workflows for the other tenant's jobs.
  await stack.startServer({ FORGE_RECONCILE_AFTER_S: "86400", FORGE_HEARTBEAT_TIMEOUT_S: "600" });
  const user = new ApiClient(stack.apiUrl, stack.keys.userKey);
  const worker = new TestWorker(new ApiClient(stack.apiUrl, stack.keys.workerKey), "w");
  await worker.register();
  // Two jobs at a time: the first is assigned when it is submitted, the second by a pass.
  for (let n = 0; n < jobs; n += 2) {
    const pair = [await user.submit("audit", AUDIT), await user.submit("audit", AUDIT)];
    const first = await worker.take();
    await worker.heartbeat({ job_id: first.job_id, attempt: first.attempt, progress: 0.5 });
    await worker.complete(first);
    await worker.complete(await worker.take());
    for (const { job_id } of pair) {
      expect((await untilEnded(user, job_id)).status).toBe("completed");
    }
  }
  // A connection reports what it has read when it ends, if not before.
  await stack.server?.stop();
  return (await blocksRead()) - before;
}

/** The blocks of one job, without those of the server's start and its sweeps. */
async function blocksPerJob(): Promise<number> {
  const few = await blocksFor(4);
  return ((await blocksFor(24)) - few) / 20;
}

test("what a job reads does not grow with the ended and queued jobs of others, even before ANALYZE has seen them", async () => {
  const jobs = (count: number, name: string) =>
    Array.from({ length: count }, (_, n) => {
      const tags = ["nowhere"];
      return { ...NO_NEEDS, tags, jobId: `${name}_${n}`, userId: "bob", priority: 0, queuedAt: n };
    });
  // Without autovacuum, Postgres keeps its statistics, as if the queue had just been filled.
  for (const table of ["jobs", "attempts", "job_events", "artifacts", "billing_records"]) {
    await pool.query(`alter table ${table} set (autovacuum_enabled = false)`);
  }
  const blocks: Record<string, number> = { empty: await blocksPerJob() };
  await queueJobs(pool, jobs(ENDED, "ended"));
  await pool.query(
    `update attempts set state = 'ended', outcome = 'completed', started_at = now(), ended_at = now()
     where job_id like 'ended%'`,
  );
  await pool.query(
    "update jobs set status = 'completed', result = '{}', completed_at = now() where job_id like 'ended%'",
  );
  blocks.ended = await blocksPerJob();
  await pool.query("vacuum analyze");
  await queueJobs(pool, jobs(QUEUED, "queued"));
  blocks.queued = await blocksPerJob();
  await pool.query("vacuum analyze");
  blocks.analyzed = await blocksPerJob();
  // Each is between 650 and 1,100, with a share of the sweeps. A statement that reads all rows of the
  // queue for each job adds 2,000.
  const tooMany = Object.entries(blocks).filter(([, count]) => count > 2_500);
  expect(tooMany).toEqual([]);
}, 300_000);
