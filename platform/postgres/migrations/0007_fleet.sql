alter table workers
  -- Finishes its job and takes no other; ended by registering again.
  add column draining          boolean not null default false,
  -- Kept, for jobs and attempts name it, but shown to nobody and never revived by a heartbeat.
  add column decommissioned_at timestamptz,
  add column error_code        text
    check (error_code in ('reported', 'failing', 'unresponsive', 'bootstrap_failed')),
  -- Deafness is judged by this number standing still, as silence is by heartbeat_seq.
  add column poll_seq          bigint not null default 0,
  -- Attempts in a row that failed or were lost here, and since when.
  add column strikes           integer not null default 0,
  add column strikes_since     timestamptz;

update workers set error_code = 'reported' where status = 'error';
-- Kept while dead, so that a heartbeat does not wash it off.
alter table workers add check (status <> 'error' or error_code is not null);

alter table jobs
  add column req_tags            text[] not null default '{}',
  add column cancel_requested_at timestamptz;

alter table attempts
  -- The tenant that a shared worker serves by this attempt; null on a tenant's own worker.
  add column shared_for text,
  -- Its job was cancelled: the worker may take so long to stop.
  add column cancel_by  timestamptz;

update attempts a set shared_for = j.user_id
from jobs j, workers w
where a.state in ('assigned', 'running') and j.job_id = a.job_id
  and w.worker_id = a.worker_id and w.shared;

-- What a tenant holds of the shared workers right now.
create index attempts_shares on attempts (shared_for)
  where state in ('assigned', 'running') and shared_for is not null;

-- Whether anybody succeeds while one worker fails.
create index attempts_successes on attempts (ended_at) where outcome = 'completed';

-- Jobs that wait for a worker to be set up.
create index jobs_provisioning on jobs (job_id) where status = 'provisioning_worker';
