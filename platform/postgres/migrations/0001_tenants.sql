-- A tenant is a user_id; a team shares one with named keys.
create table users (
  user_id    text primary key check (user_id ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
  name       text not null,
  created_at timestamptz not null default now()
);

create table api_keys (
  key_id        text primary key,
  user_id       text not null references users,
  scope         text not null check (scope in ('user', 'worker', 'admin')),
  name          text not null,
  digest        bytea not null unique check (length(digest) = 32),
  last4         text not null check (length(last4) = 4),
  -- A worker key that an admin made registers workers for every tenant.
  made_by_admin boolean not null default false,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz,
  last_used_at  timestamptz,
  revoked_at    timestamptz
);
