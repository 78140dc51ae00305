-- Written in the transaction that creates the thing: a key and what it created stand or fall together.
create table idempotency (
  user_id     text not null references users,
  key         text not null check (length(key) between 1 and 255),
  fingerprint text not null,
  response    jsonb,
  created_at  timestamptz not null default now(),
  primary key (user_id, key)
);
create index idempotency_by_age on idempotency (created_at);
