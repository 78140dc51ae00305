-- What a record tells of its job's work beside what is priced (core/billing/details.ts).
alter table billing_records add column details jsonb not null default '{}';
