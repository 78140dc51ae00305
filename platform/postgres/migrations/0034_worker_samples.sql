-- What workers reported in each of the last 1,440 minutes, as means. Each worker has one row for each minute of
-- the day, which the next day overwrites. So the table does not grow, and rows are deleted only for workers that
-- are gone. Unlogged: losing a day's samples in a crash does no harm.
create unlogged table worker_samples (
  worker_id text not null references workers,
  slot      smallint not null check (slot between 0 and 1439),
  at        timestamptz not null,
  -- How many heartbeats the means are of. Several processes may receive heartbeats of one worker.
  heartbeats     integer not null,
  util      double precision,
  mem_used  double precision,
  mem_total double precision,
  primary key (worker_id, slot)
) with (fillfactor = 80);
