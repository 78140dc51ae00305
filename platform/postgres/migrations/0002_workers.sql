create table workers (
  worker_id         text primary key,
  user_id           text not null references users,
  shared            boolean not null,
  boot_id           text,
  version           text,
  tags              text[] not null default '{}',
  gpu_name          text not null,
  gpu_count         integer not null check (gpu_count >= 0),
  gpu_memory_gb     double precision not null check (gpu_memory_gb >= 0),
  gpu_tokens        text[] not null,
  ssh_host          text,
  status            text not null
                    check (status in ('bootstrapping', 'idle', 'busy', 'error', 'dead')),
  status_reason     text,
  -- Silence is judged by this number standing still, never by the age of a stored time. 0: not yet heard.
  heartbeat_seq     bigint not null default 0,
  last_heartbeat_at timestamptz,
  util              double precision,
  mem_used          double precision,
  mem_total         double precision,
  -- A job may be assigned until then: the worker is parked in next_job, or asked lately.
  available_until   timestamptz,
  jobs_handled      integer not null default 0,
  registered_at     timestamptz not null default now()
);

create index workers_available on workers (available_until) where status = 'idle';
create index workers_by_user on workers (user_id);
