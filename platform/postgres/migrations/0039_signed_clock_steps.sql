-- Steps back, too, as negative seconds. The time of day does not order them, and two may have the same.
alter table clock_steps
  drop constraint clock_steps_pkey,
  drop constraint clock_steps_by_s_check,
  add column step_id bigint generated always as identity primary key,
  add check (by_s <> 0);

-- By how many seconds the clock has been set since the first step: now() less this goes on evenly.
create function clock_offset_s() returns numeric language sql stable as
  $$ select coalesce(sum(by_s), 0)::numeric from clock_steps $$;

alter table deployments
  -- What clock_offset_s() was when it began and when its stop was requested.
  add column active_offset_s numeric not null default 0,
  add column stop_offset_s   numeric,
  -- How long it had lived when the last month ended whose share is written: its bill is never less.
  add column closed_days     numeric not null default 0;

update deployments d set active_offset_s = before.s, stop_offset_s = before.s + during.s
from deployments o
cross join lateral (
  select coalesce(sum(by_s), 0)::numeric as s from clock_steps where seen_at <= o.active_at) before
cross join lateral (
  -- As bills counted steps before this.
  select case when o.stop_requested_at is not null then coalesce(sum(greatest(0, extract(epoch from
           least(step.seen_at, o.stop_requested_at)
           - greatest(step.seen_at - make_interval(secs => step.by_s), o.active_at)))), 0) end as s
  from clock_steps step where step.seen_at > o.active_at and step.seen_at <= o.stop_requested_at) during
where o.deployment_id = d.deployment_id;

-- By triggers, so that a server of the release before notes it, too. Where the clock was set back, active_at and
-- stop_requested_at may be later than now: by that much the offset is greater.
create function note_clock_offset() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    new.active_offset_s := clock_offset_s() + greatest(0, extract(epoch from new.active_at - now()));
  else
    new.stop_offset_s := clock_offset_s() + greatest(0, extract(epoch from new.stop_requested_at - now()));
  end if;
  return new;
end $$;
create trigger deployments_begun before insert on deployments
  for each row execute function note_clock_offset();
create trigger deployments_ending before update of status on deployments
  for each row when (old.stop_requested_at is null and new.stop_requested_at is not null)
  execute function note_clock_offset();
