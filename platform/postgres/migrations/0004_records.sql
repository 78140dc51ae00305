-- Reserved when a result is accepted, so that two jobs can't claim one id; listed once registered.
create table artifacts (
  artifact_id      text primary key,
  user_id          text not null references users,
  job_id           text references jobs,
  attempt          integer,
  artifact_type    text not null check (artifact_type in ('dataset', 'checkpoint', 'eval', 'deployment')),
  kind             text not null,
  uri              text not null,
  created_by       text not null,
  created_at       timestamptz not null default now(),
  source_jobs      text[] not null default '{}',
  source_artifacts text[] not null default '{}',
  size_bytes       bigint,
  manifest         jsonb,
  registered_at    timestamptz,
  check ((manifest is null) = (registered_at is null)),
  foreign key (job_id, attempt) references attempts
);
create index artifacts_by_job on artifacts (job_id);
create index artifacts_by_user on artifacts (user_id, created_at desc) where registered_at is not null;

create table billing_records (
  job_id         text primary key references jobs,
  user_id        text not null references users,
  job_type       text not null,
  attempt        integer not null,
  metrics        jsonb not null,
  unit_costs     jsonb not null,
  cost_breakdown jsonb not null,
  total_cost_usd numeric(18, 6) not null check (total_cost_usd >= 0),
  rate_card      jsonb not null,
  gpu_tokens     text[] not null,
  formula        text not null,
  state          text not null default 'final' check (state in ('accruing', 'final')),
  created_at     timestamptz not null,
  foreign key (job_id, attempt) references attempts
);
create index billing_by_month on billing_records (user_id, created_at);
