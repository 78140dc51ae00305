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
