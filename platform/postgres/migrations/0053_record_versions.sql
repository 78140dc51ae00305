-- A job completes only with the record that its manifest was made from: after lost commits, a process that paused may
-- still hold an earlier one. Null: a release before this one wrote the record.
alter table billing_records add column version uuid;
