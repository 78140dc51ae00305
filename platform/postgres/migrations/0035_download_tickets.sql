-- Permission to download one file for a minute, without a key: for links in a browser. Only a digest is stored.
-- Unlogged: a crash ends all of them.
create unlogged table download_tickets (
  digest     bytea primary key check (length(digest) = 32),
  -- The key that asked: the ticket ends with it.
  key_id     text not null references api_keys on delete cascade,
  -- Whose artifact it is, and its folder.
  user_id    text not null,
  storage_id text not null,
  path       text not null,
  expires_at timestamptz not null
);
create index download_tickets_by_age on download_tickets (expires_at);
create index download_tickets_by_key on download_tickets (key_id);
