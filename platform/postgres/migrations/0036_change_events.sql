-- Changes of pipelines, workers and deployments, for the stream of a tenant's events. Ids come from the sequence
-- of job_events, so that one number says where a stream stands. An id is assigned before the commit: a lower one
-- may become visible later.
create table change_events (
  event_id   bigint primary key default nextval('job_events_event_id_seq'),
  user_id    text not null,
  kind       text not null check (kind in ('pipeline', 'worker', 'deployment')),
  subject    text not null,
  status     text not null,
  created_at timestamptz not null default now()
);
create index change_events_by_user on change_events (user_id, event_id);
create index change_events_by_age on change_events (created_at);
create index job_events_by_user on job_events (user_id, event_id);

create function note_change_event() returns trigger language plpgsql as $$
begin
  insert into change_events (user_id, kind, subject, status)
  values (new.user_id, tg_argv[0], to_jsonb(new)->>tg_argv[1], new.status);
  return null;
end $$;

create trigger pipelines_inserted after insert on pipelines
  for each row execute function note_change_event('pipeline', 'pipeline_id');
create trigger pipelines_changed after update of status on pipelines
  for each row when (old.status is distinct from new.status)
  execute function note_change_event('pipeline', 'pipeline_id');
create trigger deployments_inserted after insert on deployments
  for each row execute function note_change_event('deployment', 'deployment_id');
create trigger deployments_changed after update of status on deployments
  for each row when (old.status is distinct from new.status)
  execute function note_change_event('deployment', 'deployment_id');
create trigger workers_inserted after insert on workers
  for each row execute function note_change_event('worker', 'worker_id');
-- Not when a worker turns busy or idle: the event of its job says so, and each job would add two rows.
create trigger workers_changed after update of status, draining, decommissioned_at on workers
  for each row when (
    old.status is distinct from new.status
      and not (old.status in ('idle', 'busy') and new.status in ('idle', 'busy'))
    or old.draining is distinct from new.draining
    or old.decommissioned_at is distinct from new.decommissioned_at)
  execute function note_change_event('worker', 'worker_id');
