-- A worker key may be made for a number of workers. Those that it registers are bound to it: no other
-- limited key acts for them. Its hosts are those that models on its workers may be served from, besides
-- the address that the worker's own requests come from.
alter table api_keys
  add column workers       integer check (workers >= 1),
  add column serving_hosts text[] not null default '{}',
  add check (workers is null or scope = 'worker'),
  add check (serving_hosts = '{}' or workers is not null);

alter table workers
  add column bound_key_id    text references api_keys,
  -- The key that asked for this machine to be set up: the worker's own key ends with it.
  add column added_by_key_id text references api_keys,
  -- Where its requests come from.
  add column address         text;
create index workers_by_key on workers (bound_key_id) where bound_key_id is not null;

-- Known to the model's server and to what asks it on the tenant's behalf; each attempt has its own.
alter table attempts add column serving_token text;
alter table placements add column token text;

-- Machines that were set up before have a key each already.
update workers set bound_key_id = bootstrap_key_id where bootstrap_key_id is not null;
update api_keys set workers = 1
where key_id in (select bootstrap_key_id from workers) and scope = 'worker' and revoked_at is null;
