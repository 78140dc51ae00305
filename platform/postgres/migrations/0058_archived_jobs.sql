-- In the order in which transactions lock them.
lock table jobs, attempts, artifacts, billing_records, billing_lines, job_events, job_metrics
  in access exclusive mode;

-- Jobs that ended a while ago move to these tables, with their attempts (services/jobs/archive.ts), so that the
-- tables that every job changes stay small. A migration that adds a column to `jobs` or `attempts` must add it to these
-- tables, too: the columns and their order must be the same (test/e2e/archive.test.ts).
create table archived_jobs (like jobs);
-- With this check, Postgres does not read the table for a list of unfinished jobs.
alter table archived_jobs add primary key (job_id), add check (status in ('completed', 'failed'));
create index archived_jobs_by_user on archived_jobs (user_id, created_at desc, job_id desc);
create index archived_jobs_by_age on archived_jobs (created_at desc, job_id desc) where length(user_id) > 0;
create index archived_jobs_ended_by_user on archived_jobs (user_id, completed_at desc, job_id desc)
  include (created_at, started_at, job_type, status, error_code);
create index archived_jobs_ended_by_age on archived_jobs (completed_at desc, job_id desc)
  include (user_id, created_at, started_at, job_type, status, error_code) where length(user_id) > 0;
create index archived_jobs_by_type on archived_jobs (user_id, job_type, completed_at desc) where status = 'completed';
create index archived_jobs_by_reuse_key on archived_jobs (user_id, reuse_key, completed_at desc)
  where reuse_key is not null and status = 'completed';
create index archived_jobs_to_sweep on archived_jobs (completed_at) where swept_at is null;
create index archived_jobs_by_pipeline on archived_jobs (pipeline_id) where pipeline_id is not null;

create table archived_attempts (like attempts);
alter table archived_attempts add primary key (job_id, attempt);

-- These refer to a job or an attempt in either table.
alter table artifacts drop constraint artifacts_job_id_fkey, drop constraint artifacts_job_id_attempt_fkey;
alter table billing_records drop constraint billing_records_job_id_fkey,
  drop constraint billing_records_job_id_attempt_fkey;
alter table billing_lines drop constraint billing_lines_job_id_fkey;
alter table job_events drop constraint job_events_job_id_fkey;
alter table job_metrics drop constraint job_metrics_job_id_fkey;
alter table jobs drop constraint jobs_retried_from_fkey;

-- As in 0013, with the type, pipeline and tags of archived jobs, too.
create or replace function add_to_billing_totals() returns trigger language plpgsql as $$
begin
  insert into billing_totals as t (user_id, month, dimension, value, records, cost_usd, gpu_hours, tokens,
                                   unbilled_gpu_hours)
  select l.user_id, l.month, d.dimension, d.value, count(*) filter (where l.is_billed), sum(l.cost_usd),
         sum(l.gpu_hours), sum(l.tokens), sum(l.unbilled_gpu_hours)
  from added l left join (
    select job_id, job_type, pipeline_id, tags from jobs
    union all select job_id, job_type, pipeline_id, tags from archived_jobs) j using (job_id)
  cross join lateral dimensions_of(j.job_type, j.pipeline_id, j.tags) d
  group by 1, 2, 3, 4
  -- In one order, so that two transactions never wait for each other's rows.
  order by 1, 2, 3, 4
  on conflict (user_id, month, dimension, value) do update set
    records = t.records + excluded.records, cost_usd = t.cost_usd + excluded.cost_usd,
    gpu_hours = t.gpu_hours + excluded.gpu_hours, tokens = t.tokens + excluded.tokens,
    unbilled_gpu_hours = t.unbilled_gpu_hours + excluded.unbilled_gpu_hours;
  return null;
end $$;
