import fc from "fast-check";
import type pg from "pg";
import type { FleetWorker, QueuedJob } from "../../core/fleet/matching";
import { createPool, execute } from "../../platform/postgres/pool";
import { ensureUser } from "../../services/accounts/users";
import { type Database, openDatabase } from "./database";
import { queueJobs } from "./queued-jobs";

export const TENANTS = ["ann", "bob", "cyd"];

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
  memoryGb: fc.constantFrom(0, 40, 74, 77, 80),
  tags: fc.subarray(["eu", "us"]),
  /** The tenant that a shared worker already works for. */
  serves: fc.option(fc.constantFrom(...TENANTS), { freq: 2 }),
});
/** Random queues of jobs of TENANTS. They are short, so that a test can run many of them. */
export const QUEUES = fc
  .array(job, { maxLength: 12 })
  .map((jobs) => jobs.map((each, n): QueuedJob => ({ ...each, jobId: `job_${n}` })));
/** Random fleets of workers of TENANTS. They are small, so that a test can run many of them. */
export const FLEETS = fc
  .array(worker, { maxLength: 12 })
  .map((workers) => workers.map((each, n) => ({ ...each, workerId: `w${n}` })));

const MOST_CAPABLE = {
  gpuTokens: ["a100", "80gb", "nvidia"],
  memoryGb: 80,
  tags: ["eu", "us"],
  jobTypes: null,
  tenants: null,
};

/**
 * Random fleets for tests of `assignOnlyJob` and `startNewJob`. Both assign a tenant's only queued
 * job to a worker of the tenant, but assign nothing if a shared worker fits the job. To make them
 * assign many jobs:
 * - Few workers are shared. A worker that is shared in FLEETS stays shared only if its `serves`,
 *   which is random, is "cyd".
 * - A worker with eight GPUs is never shared, and can run any job of its owner.
 */
export const OWN_FLEETS = FLEETS.map((fleet) =>
  fleet.map((each) =>
    each.gpuCount === 8
      ? { ...each, ...MOST_CAPABLE, shared: false }
      : { ...each, shared: each.shared && each.serves === "cyd" },
  ),
);

export type Fleet = (FleetWorker & { serves?: string | null })[];

/** A database for tests of the scheduler's statements. It contains TENANTS. */
export interface SchedulerDatabase extends Database {
  /** One connection whose statements may take a minute. */
  longStatements: pg.Pool;
  /** Replaces all jobs and workers. */
  fill(queue: QueuedJob[], fleet: Fleet): Promise<void>;
}

export async function openSchedulerDatabase(): Promise<SchedulerDatabase> {
  const database = await openDatabase();
  const { pool, logger } = database.ctx;
  for (const tenant of TENANTS) await ensureUser(pool, tenant, tenant);
  const connection = { connectionString: database.databaseUrl, max: 1, timeoutMs: 60_000 };
  const longStatements = createPool(connection, logger);
  return {
    ...database,
    longStatements,
    fill: (queue, fleet) => fill(pool, longStatements, queue, fleet),
    async stop() {
      await longStatements.end();
      await database.stop();
    },
  };
}

async function fill(
  pool: pg.Pool,
  longStatements: pg.Pool,
  queue: QueuedJob[],
  fleet: Fleet,
): Promise<void> {
  // Delete rows instead of truncating the tables: this runs a thousand times, and truncating would
  // sync files each time. Use `longStatements`, because deleting thousands of rows can take longer
  // than the statement timeout of `pool`.
  await longStatements.query(
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
  await queueJobs(pool, queue);
}
