-- Who has struck a worker since its last success, and when that was: what its failures are compared with need not
-- be looked for among all attempts.
alter table workers
  add column succeeded_at timestamptz,
  add column struck_by text[] not null default '{}';
