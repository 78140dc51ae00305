-- Activities of workflows that have failed again and again, and are tried until they work.
create table stuck_writes (
  workflow_id text not null,
  activity text not null,
  error text not null,
  tries integer not null,
  since timestamptz not null,
  tried_at timestamptz not null default now(),
  primary key (workflow_id, activity)
);
