-- Heartbeats in a row by which an attempt's worker said that it runs no job.
alter table attempts add column denials integer not null default 0;
