-- What happened to each job, in the transaction in which it happened: for streams of events now, for
-- webhooks one day. A job's events come in the order of their ids, for its row is locked by each change.
create table job_events (
  event_id   bigint generated always as identity primary key,
  job_id     text not null references jobs,
  user_id    text not null references users,
  status     text not null,
  attempts   integer not null,
  worker_id  text,
  error_code text,
  created_at timestamptz not null default now()
);
create index job_events_by_job on job_events (job_id, event_id);

-- A trigger, so that no statement that changes a status can forget it.
create function note_job_event() returns trigger language plpgsql as $$
begin
  insert into job_events (job_id, user_id, status, attempts, worker_id, error_code)
  values (new.job_id, new.user_id, new.status, new.attempts, new.worker_id, new.error_code);
  return null;
end $$;
create trigger jobs_inserted after insert on jobs
  for each row execute function note_job_event();
create trigger jobs_changed after update of status on jobs
  for each row when (old.status is distinct from new.status) execute function note_job_event();

-- Jobs that were there before: their last word.
insert into job_events (job_id, user_id, status, attempts, worker_id, error_code, created_at)
select job_id, user_id, status, attempts, worker_id, error_code, moved_at from jobs order by moved_at;

-- Lists are newest first. A tenant's unfinished jobs have an index, for a filter by status would else look
-- for them among all that ever were. The lists of all tenants, for an admin, have one each with a
-- condition that holds for every row and that only an admin's statement repeats: without it Postgres takes
-- that index for a large tenant's list too, and walks over everybody's rows to an old page of it.
create index jobs_by_age on jobs (created_at desc, job_id desc) where length(user_id) > 0;
create index jobs_active_by_user on jobs (user_id, created_at desc, job_id desc)
  where status not in ('completed', 'failed');
create index api_keys_by_user on api_keys (user_id, created_at desc, key_id desc);
create index users_by_age on users (created_at desc, user_id desc);
drop index artifacts_by_user;
create index artifacts_by_user on artifacts (user_id, created_at desc, artifact_id desc)
  where registered_at is not null;
create index artifacts_by_age on artifacts (created_at desc, artifact_id desc)
  where registered_at is not null and length(user_id) > 0;
drop index billing_by_month;
create index billing_by_month on billing_records (user_id, created_at desc, job_id desc);
create index billing_by_age on billing_records (created_at desc, job_id desc)
  where length(user_id) > 0;

-- Requests that a key may still make. Unlogged: a crash fills every bucket, and that is no harm.
create unlogged table rate_buckets (
  key_id      text primary key,
  tokens      double precision not null,
  granted     double precision not null,
  refilled_at timestamptz not null
);

-- Kept as it was sent: a replay is the first answer, to the byte.
alter table idempotency alter column response type json using response::json;

drop index workers_by_user;
create index workers_by_user on workers (user_id, registered_at desc, worker_id desc);

-- What a dataset was called when it was uploaded.
alter table artifacts add column name text;

-- How much of an answer a row takes, in bytes, so that a page of large ones ends early. Computed when
-- these columns change, which is twice in a job's life.
alter table jobs add column shown_bytes integer not null generated always as (
  octet_length(payload::text) + octet_length(params::text) + coalesce(octet_length(result::text), 0)
) stored;
alter table artifacts add column shown_bytes integer not null generated always as (
  coalesce(octet_length(manifest::text), 0)
) stored;
