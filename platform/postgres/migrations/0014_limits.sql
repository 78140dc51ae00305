-- A tenant's requests are counted together, by whichever key they come.
drop table rate_buckets;
create unlogged table rate_buckets (
  user_id     text primary key,
  tokens      double precision not null,
  granted     double precision not null,
  refilled_at timestamptz not null
);

-- Revoking a key ends those that it made.
alter table api_keys add column made_by_key_id text references api_keys;
create index api_keys_made_by on api_keys (made_by_key_id) where made_by_key_id is not null;
