create table pipelines (
  pipeline_id         text primary key,
  user_id             text not null references users,
  created_by          text not null,
  template            text,
  name                text,
  tags                text[] not null,
  budget_usd          numeric(18, 6) check (budget_usd >= 0),
  reuse               boolean not null,
  rate_card           jsonb not null,
  request_id          text not null,
  -- About how much of an answer its steps take, so that a page of large ones ends early.
  shown_bytes         integer not null,
  status              text not null default 'running'
                      check (status in ('running', 'waiting_approval', 'completed', 'failed',
                                        'cancelled')),
  -- A resume begins another: steps that are done again have another job then.
  run                 integer not null default 1 check (run > 0),
  error               text,
  error_code          text,
  created_at          timestamptz not null default now(),
  completed_at        timestamptz,
  cancel_requested_at timestamptz,
  -- The debt to its workflow: what it was asked to hear of, and how much of that it was told.
  asked               integer not null default 1,
  told                integer not null default 0,
  due_at              timestamptz not null default now(),
  tries               integer not null default 0,
  -- When it was last compared with Temporal.
  seen_at             timestamptz not null default now(),
  check ((status in ('completed', 'failed', 'cancelled')) = (completed_at is not null)),
  check ((status = 'failed') = (error_code is not null)),
  check (told <= asked)
);
create index pipelines_by_user on pipelines (user_id, created_at desc, pipeline_id desc);
create index pipelines_by_age on pipelines (created_at desc, pipeline_id desc)
  where length(user_id) > 0;
create index pipelines_owed on pipelines (due_at) where told < asked;
create index pipelines_under_way on pipelines (seen_at)
  where status in ('running', 'waiting_approval');

create table pipeline_steps (
  pipeline_id    text not null references pipelines,
  name           text not null,
  -- After everything that it needs.
  position       integer not null,
  job_type       text not null
                 check (job_type in ('generate', 'audit', 'distill', 'train', 'evaluate', 'deploy')),
  payload        jsonb not null,
  options        jsonb not null,
  needs          text[] not null,
  choose         jsonb,
  optional       boolean not null,
  gate           text,
  needs_approval boolean not null,
  status         text not null default 'pending'
                 check (status in ('pending', 'waiting_approval', 'running', 'completed', 'failed',
                                   'skipped', 'cancelled')),
  -- The pipeline's run in which it was last to be done.
  run            integer not null default 1,
  -- What its job is submitted with: references resolved. Written with job_id, before there is the job.
  submission     jsonb,
  warnings       jsonb not null default '[]',
  job_id         text,
  -- It took the job of an earlier pipeline for its own.
  reused         boolean not null default false,
  reuse_key      text,
  -- It is to be done again, whatever there is from before.
  is_fresh       boolean not null default false,
  -- Of a choice: which step, and its measure.
  chosen         jsonb,
  -- Of a gate: whether it holds, and the numbers.
  verdict        jsonb,
  -- Of an approval: whose word it was, when, and what it was.
  approved       boolean,
  decided_by     text,
  decided_at     timestamptz,
  decision_note  text,
  error          text,
  error_code     text,
  began_at       timestamptz,
  ended_at       timestamptz,
  primary key (pipeline_id, name),
  unique (pipeline_id, position),
  check ((approved is null) = (decided_at is null)),
  check (status <> 'completed' or job_id is not null),
  check ((status = 'failed') = (error_code is not null)),
  check ((status in ('completed', 'failed', 'skipped', 'cancelled')) = (ended_at is not null))
);
create index pipeline_steps_by_job on pipeline_steps (job_id) where job_id is not null;

alter table jobs
  add column pipeline_step text,
  add column pipeline_run  integer,
  -- Equal for jobs that make the same from the same.
  add column reuse_key     text,
  add foreign key (pipeline_id) references pipelines,
  add check ((pipeline_id is null) = (pipeline_step is null)),
  add check ((pipeline_id is null) = (pipeline_run is null));

-- However often it is asked for, a step has one job in a run.
create unique index jobs_one_per_step on jobs (pipeline_id, pipeline_step, pipeline_run)
  where pipeline_id is not null;
create index jobs_by_reuse_key on jobs (user_id, reuse_key, completed_at desc)
  where reuse_key is not null and status = 'completed';
-- What jobs of a type took lately.
create index jobs_by_type on jobs (user_id, job_type, completed_at desc) where status = 'completed';
