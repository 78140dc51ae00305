-- What workers reported in each of the last 1,440 minutes, as means. A minute of the day has one row for each
-- worker, written over a day later: so the table does not grow, and nothing needs to be deleted while a worker
-- lives. Unlogged: losing a day's samples in a crash does no harm.
create unlogged table worker_samples (
  worker_id text not null references workers,
  slot      smallint not null check (slot between 0 and 1439),
  at        timestamptz not null,
  -- Heartbeats that the means are of: several processes may hear one worker.
  beats     integer not null,
  util      double precision,
  mem_used  double precision,
  mem_total double precision,
  primary key (worker_id, slot)
) with (fillfactor = 80);
