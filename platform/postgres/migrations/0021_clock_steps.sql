-- When the database's clock was set forward, and by how many seconds: whoever sees it first moves the deadlines.
create table clock_steps (
  seen_at timestamptz primary key default now(),
  by_s    float8 not null check (by_s > 0)
);
