import pg from "pg";
import { DEFAULT_RATE_CARD } from "../../core/billing/rate-card";
import { NO_USAGE } from "../../core/billing/usage";
import type { Forge } from "./forge";

/** Jobs per pipeline. */
const PER_PIPELINE = 50;
const BATCH = 100_000;

/** One row per job type: the usage of job `n` of this type, and its cost by the default card. */
const WORK = `(values
  ('audit',    'audit',      'rows_processed',    (n % 50000) + 1,       (n % 50000 + 1) / 1000.0 * 0.20),
  ('generate', 'generation', 'tokens_generated',  (n % 9999999) + 1,     (n % 9999999 + 1) / 1000000.0 * 0.30),
  ('distill',  'generation', 'tokens_generated',  (n % 777777) + 1,      (n % 777777 + 1) / 1000000.0 * 0.30),
  ('train',    'gpu',        'gpu_hours',         (n % 9973) / 1000.0,   (n % 9973) / 1000.0 * 2.50),
  ('evaluate', 'eval',       'samples_evaluated', (n % 333) + 1,         (n % 333 + 1) / 100.0 * 0.10)
) work (type, line, field, used, usd)`;

/** Each job has three tags: the tag `all`, one of 7 `team-` tags, and one of 401 `run-` tags. */
const TAGS = "array['all', 'team-' || n % 7, 'run-' || n % 401]";

/**
 * Inserts `count` bills of a tenant in this month, and a tenth as many in the month before. Also
 * inserts their worker, pipelines, jobs, attempts and billing lines. No trigger runs, so the caller
 * must rebuild the months' totals.
 */
export async function seedBills(forge: Forge, userId: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: forge.stack.databaseUrl });
  await client.connect();
  try {
    await client.query("set session_replication_role = replica; set synchronous_commit = off");
    await client.query(
      `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status,
                            decommissioned_at)
       values ('seed-' || $1, $1, false, 'cpu', 0, 0, '{}', 'dead', now())`,
      [userId],
    );
    await client.query(PIPELINES, [userId, Math.ceil(count / PER_PIPELINE)]);
    const last = Math.floor(count * 1.1);
    for (let from = 1; from <= last; from += BATCH) {
      const until = Math.min(last, from + BATCH - 1);
      await client.query(BILLS, [userId, from, until, count, DEFAULT_RATE_CARD, NO_USAGE]);
    }
  } finally {
    await client.end();
  }
}

const PIPELINES = `
  insert into pipelines (pipeline_id, user_id, created_by, tags, reuse, rate_card, request_id, shown_bytes,
                         status, completed_at, told)
  select 'pipe_' || $1 || n, $1, 'k', '{}', false, '{}', 'r', 0, 'completed', now(), 1
  from generate_series(0, $2::int) n`;

/** Later bills have greater ids, like those that Forge generates. */
const BILLS = `
  with one as (
    select 'job_' || $1 || '_' || lpad((10000000 - n)::text, 8, '0') as job_id, n, work.*, round(work.usd, 6)::text as cost,
           case when n <= $4::int
                then now() - (now() - month) * (n::float8 / $4::int)
                else month - interval '1 minute' * (n - $4::int) / ($4::int / 10000.0 + 1) end as at
    from (select date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' as month) m,
         generate_series($2::int, $3::int) n
    cross join lateral (select * from ${WORK} offset n % 5 limit 1) work),
  jobs as (
    insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                      timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                      request_id, status, result, attempts, created_at, started_at, completed_at, swept_at,
                      pipeline_id, pipeline_step, pipeline_run)
    select job_id, $1, 'k', type, '{"dataset_uri": "s3://bucket/key"}', '{}', '{}', ${TAGS}, 0,
           60, 3, 0, '{}', 0, $5, 'r', 'completed', '{}', 1, at, at, at, at,
           'pipe_' || $1 || n / ${PER_PIPELINE}, 's' || n, 1
    from one),
  attempts as (
    insert into attempts (job_id, attempt, state, shape, priority, worker_id, queued_at, started_at, ended_at,
                          outcome, gpu_hours_measured)
    select job_id, 1, 'ended', '', 0, 'seed-' || $1, at, at, at, 'completed', 100 from one),
  bills as (
    insert into billing_records (job_id, user_id, job_type, attempt, metrics, unit_costs, cost_breakdown,
                                 total_cost_usd, rate_card, gpu_tokens, formula, created_at, attempts)
    select job_id, $1, type, 1,
           $6::jsonb || jsonb_build_object('stored_gb', 0, 'gpu_hours_measured', 100, field, used),
           '{"gpu_hour": "2.50", "audit_per_1k_rows": "0.20"}', jsonb_build_object(line, cost), cost::numeric,
           $5, '{}', field || ' ' || used, at,
           jsonb_build_array(jsonb_build_object('attempt', 1, 'outcome', 'completed', 'billed', true,
             'worker_id', 'seed-' || $1, 'gpu_tokens', '[]'::jsonb, 'flags', '[]'::jsonb,
             'gpu_hours_measured', 100, 'gpu_hours_reported', used,
             'usage', $6::jsonb || jsonb_build_object(field, used)))
    from one)
  insert into billing_lines (line_id, user_id, month, job_id, cost_usd, gpu_hours, created_at, exported_at)
  select job_id || ':' || to_char(at at time zone 'UTC', 'YYYY-MM'), $1,
         date_trunc('month', at at time zone 'UTC'), job_id, cost::numeric,
         case when field = 'gpu_hours' then used else 0 end, at, at
  from one`;
