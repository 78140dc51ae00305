-- A model that is served, from its first healthy server until somebody stops it. Its row and its first
-- placement appear in the transaction that completes its job.
create table deployments (
  deployment_id     text primary key references artifacts (artifact_id),
  user_id           text not null references users,
  job_id            text not null unique references jobs,
  checkpoint_id     text,
  status            text not null default 'active' check (status in ('active', 'stopping', 'stopped')),
  min_replicas      integer not null check (min_replicas between 1 and 16),
  max_replicas      integer not null check (max_replicas between min_replicas and 16),
  -- What is billed is the time from the one to the other, whatever happens between them.
  active_at         timestamptz not null,
  stop_requested_at timestamptz check (stop_requested_at >= active_at),
  stopped_at        timestamptz,
  stopped_by        text,
  created_at        timestamptz not null default now(),
  -- Placements in a row that came to nothing, when the next may be tried, and what was wrong.
  failures          integer not null default 0,
  next_try_at       timestamptz,
  trouble           text,
  -- The debt to its workflow: how often there was something to look at, and how much of that it was told.
  asked             integer not null default 1,
  told              integer not null default 0,
  tell_at           timestamptz not null default now(),
  -- For the sweep: when its workflow was last looked at.
  seen_at           timestamptz not null default now(),
  check ((status = 'active') = (stop_requested_at is null)),
  check ((status = 'active') = (stopped_by is null)),
  check ((status = 'stopped') = (stopped_at is not null)),
  check (told <= asked)
);
create index deployments_by_user on deployments (user_id, created_at desc, deployment_id desc);
create index deployments_by_age on deployments (created_at desc, deployment_id desc)
  where length(user_id) > 0;
create index deployments_live on deployments (deployment_id) where status <> 'stopped';

-- Where a deployment is served, one after the other and side by side.
create table placements (
  deployment_id   text not null references deployments,
  placement       integer not null check (placement >= 1),
  -- The job that makes it.
  job_id          text not null unique references jobs,
  -- Null while no worker has made it.
  worker_id       text references workers,
  inference_url   text,
  state           text not null default 'starting'
                  check (state in ('starting', 'serving', 'stopping', 'ended')),
  outcome         text check (outcome in ('worker_lost', 'missing', 'unhealthy', 'stopped', 'failed')),
  created_at      timestamptz not null default now(),
  serving_at      timestamptz,
  stopping_at     timestamptz,
  ended_at        timestamptz,
  healthy         boolean not null default true,
  missing_since   timestamptz,
  unhealthy_since timestamptz,
  primary key (deployment_id, placement),
  check ((state = 'ended') = (ended_at is not null)),
  check ((state = 'ended') = (outcome is not null)),
  check (state not in ('serving', 'stopping') or (worker_id is not null and serving_at is not null)),
  check ((state = 'stopping') <= (stopping_at is not null)),
  check (healthy = (unhealthy_since is null))
);
create unique index placements_one_live_per_worker on placements (worker_id, deployment_id)
  where state in ('serving', 'stopping');
-- One is made at a time, so that the next one knows where not to go.
create unique index placements_one_starting on placements (deployment_id) where state = 'starting';
create index placements_stopping on placements (stopping_at) where state = 'stopping';

create function keep_deployment_stopped() returns trigger language plpgsql as $$
begin
  if old.status = 'stopped' and new.status <> 'stopped'
     or old.status = 'stopping' and new.status = 'active' then
    raise exception 'deployment % is % and never % again', old.deployment_id, old.status, new.status
      using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger deployments_stopped before update on deployments
  for each row execute function keep_deployment_stopped();

create function keep_placement_ended() returns trigger language plpgsql as $$
begin
  if old.state = 'ended' then
    raise exception 'placement % of % has ended', old.placement, old.deployment_id
      using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger placements_ended before update on placements
  for each row execute function keep_placement_ended();

alter table jobs
  -- Of a job that places a deployment again; null on users' own jobs.
  add column deployment_id text references deployments,
  add column placement     integer,
  -- Workers that it must not go to.
  add column req_avoid     text[] not null default '{}',
  add check ((deployment_id is null) = (placement is null));
create index jobs_of_deployments on jobs (deployment_id)
  where deployment_id is not null and status not in ('completed', 'failed');

-- Models that were deployed before. Where the worker lives, it serves them, and they are active since then:
-- their bills go on. Where it does not, they ended after the time that was billed.
insert into deployments (deployment_id, user_id, job_id, checkpoint_id, status, min_replicas, max_replicas,
                         active_at, stop_requested_at, stopped_at, stopped_by, asked, told)
select r.artifact_id, j.user_id, j.job_id, j.payload->>'checkpoint_id',
       case when lives then 'active' else 'stopped' end, 1, 1, a.ended_at,
       case when not lives then until end, case when not lives then until end,
       case when not lives then 'worker_lost' end, 1, 0
from artifacts r join jobs j using (job_id)
join attempts a on a.job_id = r.job_id and a.attempt = r.attempt
join workers w on w.worker_id = a.worker_id
join billing_records b on b.job_id = j.job_id
cross join lateral (
  select r.deleted_at is null and w.status <> 'dead' and w.decommissioned_at is null as lives,
         a.ended_at + coalesce((b.metrics->>'deployment_lifetime_days')::float8, 0) * interval '1 day'
           as until) as of
where r.kind = 'deployment' and r.registered_at is not null and j.status = 'completed';

insert into placements (deployment_id, placement, job_id, worker_id, inference_url, state, outcome,
                        serving_at, ended_at)
select d.deployment_id, 1, d.job_id, a.worker_id, a.result->>'inference_url',
       case when d.status = 'active' then 'serving' else 'ended' end,
       case when d.status = 'active' then null else 'worker_lost' end, d.active_at, d.stopped_at
from deployments d join artifacts r on r.artifact_id = d.deployment_id
join attempts a on a.job_id = r.job_id and a.attempt = r.attempt;

update billing_records b set state = 'accruing', total_cost_usd = 0,
       metrics = b.metrics || '{"deployment_lifetime_days": 0}',
       cost_breakdown = b.cost_breakdown || '{"deploy": "0"}',
       formula = (b.rate_card->>'deployPerMonth') || ' per month x (0 days / 30.0) = 0 USD'
from deployments d where d.job_id = b.job_id and d.status = 'active';
