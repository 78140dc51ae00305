-- From when to when each process has looked at the clock without seeing a step that was not recorded: another one
-- that sees one all the same was suspended. In ms since the epoch, less the steps recorded by then. Unlogged: after
-- a crash they look anew.
create unlogged table clock_looks (
  process_id text primary key,
  since_ms   double precision not null,
  until_ms   double precision not null
);
