-- What running jobs reported, over time. A point is written at most every 10 s, and of a long attempt at most
-- every thousandth of its time so far, so an attempt of a week has some 5,000.
create table job_metrics (
  job_id   text not null references jobs,
  attempt  integer not null,
  at       timestamptz not null,
  progress double precision,
  metrics  jsonb not null,
  primary key (job_id, attempt, at)
);
create index job_metrics_by_age on job_metrics (at);
