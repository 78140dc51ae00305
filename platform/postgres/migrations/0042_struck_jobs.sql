-- Whose failures are a worker's strikes: what is taken back of a job is what counted of it.
alter table workers add column struck_jobs text[] not null default '{}';

-- By a trigger, so that a server of the release before forgets them, too.
create function forget_struck_jobs() returns trigger language plpgsql as $$
begin
  new.struck_jobs := '{}';
  return new;
end $$;
create trigger workers_well before update of strikes on workers
  for each row when (new.strikes = 0 and cardinality(new.struck_jobs) > 0)
  execute function forget_struck_jobs();
