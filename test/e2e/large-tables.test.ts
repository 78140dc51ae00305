/**
 * Work whose cost must not grow with the size of the tables. Rows are written with SQL in a real
 * Postgres, without a server.
 */

import { WorkflowNotFoundError } from "@temporalio/client";
import pg from "pg";
import { jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { createKey } from "../../services/accounts/keys";
import { ensureUser } from "../../services/accounts/users";
import { recordStep } from "../../services/clock/record-step";
import type { Context } from "../../services/context";
import { deleteOldRequests } from "../../services/deployments/deployment-requests";
import { strikeWorker } from "../../services/fleet/strikes";
import { deleteOldSamples } from "../../services/fleet/worker-samples";
import { Retention } from "../../services/retention";
import { Reconciler } from "../../services/temporal/reconciler";
import { type Database, openDatabase } from "../support/database";

const JOBS = process.env.TEST_SLOW ? 100_000 : 10_000;
const LOST = 5;

let forge: Database;

beforeAll(async () => {
  forge = await openDatabase({ FORGE_RECONCILE_AFTER_S: "60" });
  const { pool } = forge.ctx;
  await ensureUser(pool, "ann", "ann");
  await createKey(pool, { userId: "ann", scope: "user", name: "k", madeByAdmin: false });
  // Insert with a separate connection, because it has no statement timeout. `replica` turns
  // triggers off, so that the inserts write no change events.
  const db = new pg.Client({ connectionString: forge.databaseUrl });
  await db.connect();
  await db.query("set session_replication_role = replica");
  await db.query(
    `insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                         timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                         request_id, status, attempts, moved_at)
       select 'job_' || n, 'ann', 'k', 'audit', '{}', '{}', '{}', '{}', 0, 60, 3, 0, '{}', 0, '{}', 'r',
              'running', 1, now() - interval '1 hour'
       from generate_series(1, ${JOBS}) n`,
  );
  // All attempts belong to one worker, so its history is as long as the table.
  await db.query(
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens,
                            status, strikes, strikes_since)
       select id, 'ann', false, 'gpu', 0, 0, '{}', 'idle', 2, now()
       from unnest(array['old', 'other']) id`,
  );
  await db.query(
    `insert into attempts (job_id, attempt, shape, priority, worker_id, state, started_at, ended_at, outcome)
       select 'job_' || n, 1, 's', 0, 'old', 'ended', now(), now(), 'failed'
       from generate_series(1, ${JOBS}) n`,
  );
  await db.query(
    `insert into attempts (job_id, attempt, shape, priority)
       select 'job_' || n, 2, 's', 0 from generate_series(1, ${JOBS}) n`,
  );
  await db.end();
  await pool.query("analyze jobs, attempts, workers");
});

afterAll(async () => {
  await forge?.stop();
});

test("of very many open jobs, only those without a workflow cause requests, well within a minute", async () => {
  const described = new Set<string>();
  const started = new Set<string>();
  const temporal = {
    withDeadline: (_until: number, work: () => Promise<unknown>) => work(),
    workflow: {
      async *list() {
        for (let n = LOST + 1; n <= JOBS; n++) yield { workflowId: jobWorkflowId(`job_${n}`) };
      },
      getHandle: (id: string) => ({
        async describe() {
          described.add(id);
          throw new WorkflowNotFoundError("none", id, undefined);
        },
      }),
      async start(_type: string, { workflowId }: { workflowId: string }) {
        started.add(workflowId);
      },
    },
  };
  const reconciler = new Reconciler({ ...forge.ctx, temporal } as unknown as Context);
  const began = process.cpuUsage();
  reconciler.start();
  await waitFor("those that are gone to be started again", () => started.size === LOST);
  // Measure only this process's CPU time, because other tests run at the same time. Postgres needs
  // little time: a single scan.
  const spent = process.cpuUsage(began);
  const sweepMs = (spent.user + spent.system) / 1000;
  // With 100,000 jobs, at most a minute may pass from the end of one sweep to the end of the next.
  // In this time, the reconciler rests for at most four times a sweep's duration, then waits for
  // its interval of 15 s, and then sweeps.
  expect(15_000 + 5 * sweepMs * (100_000 / JOBS)).toBeLessThan(60_000);
  await reconciler.stop();
  const lost = Array.from({ length: LOST }, (_, n) => jobWorkflowId(`job_${n + 1}`));
  expect([...described].sort()).toEqual(lost);
  expect([...started].sort()).toEqual(lost);
});

test("a strike reads nothing of its worker's history", async () => {
  const read = async (db: Queryable): Promise<number> => {
    const row = await maybeOne<{ n: number }>(
      db,
      `select seq_tup_read + idx_tup_fetch as n from pg_stat_xact_user_tables where relname = 'attempts'`,
    );
    return row?.n ?? 0;
  };
  await transaction(forge.ctx.pool, async (db) => {
    const before = await read(db);
    expect(await strikeWorker(db, "old", "job_1")).toBe("idle");
    expect((await read(db)) - before).toBeLessThan(10);
  });
  const rows = await all<{ strikes: number }>(
    forge.ctx.pool,
    "select strikes from workers where worker_id = 'old'",
  );
  expect(rows).toEqual([{ strikes: 3 }]);
  // While no other worker succeeds, the worker stays in service and collects strikes. Its row must
  // not grow with their number.
  const size = async (): Promise<number> => {
    const [row] = await all<{ n: number }>(
      forge.ctx.pool,
      "select pg_column_size(w.*) as n from workers w where worker_id = 'old'",
    );
    return row?.n ?? 0;
  };
  const strike = async (from: number, to: number): Promise<void> => {
    for (let n = from; n <= to; n++) await strikeWorker(forge.ctx.pool, "old", `job_${n}`);
  };
  await strike(2, 30);
  const before = await size();
  await strike(31, 100);
  expect(await size()).toBeLessThanOrEqual(before + 50);
  // A strike is removed if its job also fails on another worker.
  const counted =
    "select strikes, cardinality(struck_jobs) as jobs from workers where worker_id = 'old'";
  const [before100] = await all<{ strikes: number; jobs: number }>(forge.ctx.pool, counted);
  await strikeWorker(forge.ctx.pool, "other", "job_100");
  expect(await all(forge.ctx.pool, counted)).toEqual([
    { strikes: (before100?.strikes ?? 0) - 1, jobs: (before100?.jobs ?? 0) - 1 },
  ]);
});

test("recording a step back of the clock writes no ended job", async () => {
  const { pool } = forge.ctx;
  await execute(
    pool,
    `insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                       timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                       request_id, status, attempts, completed_at, result)
     select 'over_' || n, 'ann', 'k', 'audit', '{}', '{}', '{}', '{}', 0, 60, 3, 0, '{}', 0, '{}', 'r',
            'completed', 1, now(), '{}'
     from generate_series(1, 1_000) n`,
  );
  // Simulate jobs that ended before the clock was set back: their `moved_at` is in the future.
  await execute(
    pool,
    "update jobs set moved_at = now() + interval '1 hour' where status = 'completed'",
  );
  const written =
    "select xmin::text as by, count(*)::int as jobs from jobs where status = 'completed' group by 1";
  const before = await all(pool, written);
  await transaction(pool, (db) => recordStep(db, -86_400, 1), { timeoutMs: 60_000 });
  expect(await all(pool, written)).toEqual(before);
});

test("very many old rows are deleted in bounded batches, and none is left after a run", async () => {
  const { pool } = forge.ctx;
  const db = new pg.Client({ connectionString: forge.databaseUrl });
  await db.connect();
  await db.query(
    `insert into idempotency (user_id, key, fingerprint, created_at)
     select 'ann', n::text, 'f', now() - interval '1 year' from generate_series(1, ${15 * JOBS}) n`,
  );
  // Turn foreign keys off, because the deployment_requests have no deployments.
  await db.query("set session_replication_role = replica");
  await db.query(
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status,
                          last_heartbeat_at)
     select 'silent_' || n, 'ann', false, 'gpu', 0, 0, '{}', 'dead', now() - interval '1 year'
     from generate_series(1, 20) n`,
  );
  await db.query(
    `insert into worker_samples (worker_id, slot, at, heartbeats)
     select 'silent_' || n, slot, now() - interval '1 year', 1
     from generate_series(1, 20) n cross join generate_series(0, 1439) slot`,
  );
  await db.query(
    `insert into deployment_requests (deployment_id, slot, at, requests, errors, latency)
     select 'd' || n, slot, now() - interval '1 year', 1, 0, '{}'
     from generate_series(1, 20) n cross join generate_series(0, 1439) slot`,
  );
  await db.end();
  expect(await deleteOldSamples(pool, 10_000)).toBe(10_000);
  expect(await deleteOldRequests(pool, 10_000)).toBe(10_000);
  const retention = new Retention(forge.ctx);
  retention.start();
  const left = `select from idempotency union all select from worker_samples
    union all select from deployment_requests limit 1`;
  await waitFor("all to be forgotten", async () => (await maybeOne(pool, left)) === undefined, {
    timeoutMs: 50_000,
  });
  await retention.stop();
});
