-- What was measured of a file when it arrived, so that a large one need not be read again at the end.
create table attempt_files (
  job_id     text not null,
  attempt    integer not null,
  path       text not null,
  size_bytes bigint not null,
  -- Null: it came twice with different bytes, and which of them are there only reading tells.
  sha256     text,
  -- Uploads of it that are about to get their name in the store, and until when that is believed.
  movers       integer not null default 0,
  moving_until timestamptz,
  primary key (job_id, attempt, path),
  foreign key (job_id, attempt) references attempts
);

alter table artifacts
  -- A tombstone: the entry and its manifest stay, the bytes go.
  add column deleted_at       timestamptz,
  -- The name of the key that deleted it; "retention" where a rule did.
  add column deleted_by       text,
  add column bytes_removed_at timestamptz,
  add check ((deleted_at is null) = (deleted_by is null)),
  add check (deleted_at is null or registered_at is not null),
  add check (bytes_removed_at is null or deleted_at is not null);
create index artifacts_by_source on artifacts using gin (source_artifacts)
  where registered_at is not null;
create index artifacts_to_remove on artifacts (deleted_at)
  where deleted_at is not null and bytes_removed_at is null;

create index artifacts_by_kind on artifacts (user_id, kind, created_at, artifact_id)
  where registered_at is not null and deleted_at is null;
-- Uploads that were begun and not ended.
create index artifacts_unregistered on artifacts (created_at)
  where registered_at is null and job_id is null;

-- When what the attempts of an ended job left behind was removed.
alter table jobs add column swept_at timestamptz;
create index jobs_to_sweep on jobs (completed_at)
  where swept_at is null and completed_at is not null;

-- How long a tenant keeps artifacts of a kind that nothing depends on.
create table retention_rules (
  user_id   text not null references users,
  kind      text not null,
  keep_days integer not null check (keep_days > 0),
  primary key (user_id, kind)
);
