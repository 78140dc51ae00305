-- What an entry is: the start of its job's workflow, or the outcome of one attempt. Attempts are numbered from 1, and
-- the start's number is 0. It stays the key, because a server of the previous release reads and writes only the number.
alter table outbox add column topic text not null
  generated always as (case attempt when 0 then 'start' else 'outcome' end) stored;
