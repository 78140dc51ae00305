-- A session is a key that another key was exchanged for: the dashboard keeps it in place of that key.
alter table api_keys
  -- The key that was exchanged, whose name and scope the session has; null: it is no session.
  add column session_of text references api_keys,
  add check (session_of is null or (expires_at is not null and scope <> 'worker'));
create index api_keys_sessions on api_keys (user_id, expires_at) where session_of is not null;
