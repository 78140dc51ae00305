import pg from "pg";
import { LOCAL_USER } from "../../stack/secrets";

/**
 * Runs a statement that inserts many rows. Uses a separate connection without a statement time-out,
 * because the statement takes longer than the time-out of a forge-server's connections.
 */
async function seed(databaseUrl: string, statement: string, values: unknown[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    // Disables triggers, so that these rows cause no events.
    await client.query("set session_replication_role = replica");
    await client.query(statement, values);
    // Vacuums now, so that autovacuum doesn't run during the measurement.
    await client.query("vacuum analyze workers, jobs, attempts");
  } finally {
    await client.end();
  }
}

/**
 * Inserts workers for a `Fleet` with `isRegistered`. Registering so many workers would take long,
 * because a server limits the rate of registrations.
 */
export async function insertWorkers(databaseUrl: string, count: number): Promise<void> {
  await seed(
    databaseUrl,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens,
                          status, heartbeat_seq, last_heartbeat_at)
     select 'bench-' || n, $1, false, 'cpu', 0, 0, '{}', 'idle', 1, now()
     from generate_series(0, $2::int - 1) n`,
    [LOCAL_USER, count],
  );
}

export interface QueuedJobs {
  jobs: number;
  /** Number of tenants that own the jobs. The tenant that runs the benchmark is not one of them. */
  tenants: number;
  /** Number of different requirements among the jobs of each tenant. */
  groups: number;
}

/** Adds queued jobs that no worker fits. They have no workflows. */
export async function insertQueuedJobs(
  databaseUrl: string,
  { jobs, tenants, groups }: QueuedJobs,
): Promise<void> {
  await seed(
    databaseUrl,
    `with queued as (
       insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                         timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, req_tags,
                         rate_card, request_id)
       select 'queued_' || n, 'tenant_' || n % $2::int, 'bench', 'audit', '{}', '{}', '{}', '{}', 0, 60, 3,
              1, '{}', 80, array['nowhere_' || (n / $2::int) % $3::int], '{}', 'bench'
       from generate_series(0, $1::int - 1) n
       returning job_id, user_id, req_tags)
     insert into attempts (job_id, attempt, shape, priority)
     select job_id, 1, format('["%s","audit",1,80,[],["%s"]]', user_id, req_tags[1]), 0 from queued`,
    [jobs, tenants, groups],
  );
}
