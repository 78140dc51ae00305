alter table workers
  add column ssh_port         integer,
  add column ssh_user         text,
  -- A file's name below the configured directory; never what is in it.
  add column ssh_key_path     text,
  -- Given, or recorded at the first connection; required ever after.
  add column ssh_host_key     text,
  add column provider         text,
  add column metadata         jsonb,
  -- The worker key that was made for it.
  add column bootstrap_key_id text references api_keys,
  -- Each call for a bootstrap counts; its workflow says which it has begun.
  add column bootstrap_run    integer not null default 0,
  add column bootstrap_begun  integer not null default 0,
  -- For the sweep: when the workflow was last looked at.
  add column bootstrap_seen_at timestamptz;

create index workers_bootstrapping on workers (worker_id) where status = 'bootstrapping';

create table bootstrap_steps (
  worker_id  text not null references workers,
  step       text not null,
  position   integer not null,
  status     text not null default 'pending'
             check (status in ('pending', 'running', 'completed', 'failed')),
  tries      integer not null default 0,
  started_at timestamptz,
  ended_at   timestamptz,
  -- What the machine said, the end of it.
  log        text not null default '',
  error      text,
  primary key (worker_id, step)
);
