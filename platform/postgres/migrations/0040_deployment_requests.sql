-- What each deployment was asked in each of the last 1,440 minutes. As in worker_samples, a deployment has one row
-- for each minute of the day, which the next day overwrites, so the table is bounded. Unlogged: losing a day's
-- counts in a crash does no harm.
create unlogged table deployment_requests (
  deployment_id text not null references deployments,
  slot          smallint not null check (slot between 0 and 1439),
  at            timestamptz not null,
  requests      integer not null,
  errors        integer not null,
  -- Null where no answer of the minute said how many.
  input_tokens  bigint,
  output_tokens bigint,
  -- Requests by how long they took: core/deployments/latency.ts has the bounds.
  latency       integer[] not null,
  primary key (deployment_id, slot)
) with (fillfactor = 80);
