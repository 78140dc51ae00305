-- Ended jobs by their end, of one tenant and of all (see 0006 for the condition): what is counted over a time
-- span is read from the index alone.
create index jobs_ended_by_user on jobs (user_id, completed_at desc, job_id desc)
  include (created_at, started_at, job_type, status, error_code)
  where completed_at is not null;
create index jobs_ended_by_age on jobs (completed_at desc, job_id desc)
  include (user_id, created_at, started_at, job_type, status, error_code)
  where completed_at is not null and length(user_id) > 0;
