create table jobs (
  job_id            text primary key,
  user_id           text not null references users,
  created_by        text not null,
  job_type          text not null
                    check (job_type in ('generate', 'audit', 'distill', 'train', 'evaluate', 'deploy')),
  payload           jsonb not null,
  resources         jsonb not null,
  params            jsonb not null,
  tags              text[] not null,
  notes             text,
  warnings          jsonb not null default '[]',
  priority          integer not null check (priority between -100 and 100),
  timeout_s         integer not null check (timeout_s > 0),
  max_attempts      integer not null check (max_attempts between 1 and 3),
  req_gpu_count     integer not null,
  req_gpu_tokens    text[] not null,
  req_memory_gb     double precision not null,
  rate_card         jsonb not null,
  request_id        text not null,

  status            text not null default 'pending'
                    check (status in ('pending', 'provisioning_worker', 'assigned', 'running',
                                      'completed', 'failed')),
  -- Hand-outs by next_job.
  attempts          integer not null default 0 check (attempts between 0 and max_attempts),
  worker_id         text references workers,
  progress          double precision check (progress between 0 and 1),
  result            jsonb,
  error             text,
  error_code        text check (error_code in ('job_error', 'worker_lost', 'timeout', 'cancelled',
                                               'bootstrap_failed', 'artifact_conflict')),
  artifacts_uri     text,
  logs_uri          text,
  pipeline_id       text,
  retried_from      text references jobs,
  created_at        timestamptz not null default now(),
  started_at        timestamptz,
  completed_at      timestamptz,
  -- For the reconciler: when the status last changed, when the workflow was last looked at.
  moved_at          timestamptz not null default now(),
  reconciled_at     timestamptz not null default now(),

  check ((status in ('completed', 'failed')) = (completed_at is not null)),
  check ((status = 'completed') = (result is not null)),
  check ((status = 'failed') = (error_code is not null))
);

create index jobs_by_user on jobs (user_id, created_at desc, job_id desc);
create index jobs_unfinished on jobs (reconciled_at) where status not in ('completed', 'failed');

create table attempts (
  job_id          text not null references jobs,
  attempt         integer not null check (attempt between 1 and 3),
  state           text not null default 'queued'
                  check (state in ('queued', 'assigned', 'running', 'ended')),
  -- Of the job, repeated here so that the queue is read from one index.
  shape           text not null collate "C",
  priority        integer not null,
  worker_id       text references workers,
  output_ids      jsonb not null default '{}',
  queued_at       timestamptz not null default now(),
  assigned_at     timestamptz,
  started_at      timestamptz,
  deadline_at     timestamptz,
  ended_at        timestamptz,
  outcome         text check (outcome in ('completed', 'failed', 'worker_lost', 'timeout', 'cancelled')),
  retryable       boolean not null default false,
  error           text,
  error_code      text,
  result          jsonb,
  metrics         jsonb,
  usage           jsonb,
  artifacts_uri   text,
  logs_uri        text,
  -- Digest of the accepted result, by which a repeated one is told from another.
  result_digest   text,
  primary key (job_id, attempt),
  check ((state = 'ended') = (outcome is not null)),
  check ((state = 'ended') = (ended_at is not null)),
  check (state not in ('assigned', 'running') or worker_id is not null)
);

create unique index attempts_one_live_per_job on attempts (job_id) where state <> 'ended';
create unique index attempts_one_per_worker on attempts (worker_id) where state in ('assigned', 'running');
create index attempts_queue on attempts (shape, priority desc, queued_at, job_id) where state = 'queued';
create index attempts_by_worker on attempts (worker_id, job_id);

-- What Temporal still has to be told. attempt 0: start the job's workflow; n: how attempt n ended.
create table outbox (
  job_id     text not null references jobs,
  attempt    integer not null check (attempt >= 0),
  due_at     timestamptz not null,
  tries      integer not null default 0,
  last_error text,
  primary key (job_id, attempt)
);
create index outbox_due on outbox (due_at);

create function keep_job_terminal() returns trigger language plpgsql as $$
begin
  if old.status in ('completed', 'failed') and new.status is distinct from old.status then
    raise exception 'job % is % and stays so', old.job_id, old.status using errcode = 'check_violation';
  end if;
  if new.attempts < old.attempts then
    raise exception 'job %: attempts never shrink', old.job_id using errcode = 'check_violation';
  end if;
  if new.status is distinct from old.status then
    new.moved_at := now();
  end if;
  return new;
end $$;
create trigger jobs_terminal before update on jobs
  for each row execute function keep_job_terminal();

create function keep_attempt_ended() returns trigger language plpgsql as $$
begin
  if old.state = 'ended' then
    raise exception 'attempt % of job % has ended', old.attempt, old.job_id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger attempts_ended before update on attempts
  for each row execute function keep_attempt_ended();
