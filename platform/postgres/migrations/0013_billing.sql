-- Prices, by name and version. A version is never changed: another takes its place from a date on.
create table rate_cards (
  name           text not null check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  version        integer not null check (version >= 1),
  effective_from timestamptz not null,
  prices         jsonb not null,
  created_by     text not null,
  created_at     timestamptz not null default now(),
  primary key (name, version)
);
insert into rate_cards (name, version, effective_from, prices, created_by) values
  ('default', 1, '1970-01-01T00:00:00Z', '{"basis": "work", "gpuHour": {"a100": "1.25", "default": "2.50"},
    "generationPer1mTokens": "0.30", "auditPer1kRows": "0.20", "evalPer100Samples": "0.10",
    "deployPerMonth": "2"}', 'forge'),
  ('metered', 1, '1970-01-01T00:00:00Z', '{"basis": "metered", "gpuHour": {"default": "2.50"},
    "inputPer1mTokens": "10.00", "outputPer1mTokens": "30.00", "storagePerGbMonth": "0.02",
    "deployPerMonth": "0"}', 'forge');

-- By which card a tenant pays, from a date on; without a row by `default`.
create table tenant_rate_cards (
  user_id        text not null references users,
  rate_card      text not null,
  effective_from timestamptz not null,
  created_by     text not null,
  created_at     timestamptz not null default now(),
  primary key (user_id, effective_from)
);

alter table users
  -- The tenant's customer id at the payment processor.
  add column payment_customer_id text check (payment_customer_id ~ '^[A-Za-z0-9_-]{1,255}$');

alter table attempts
  -- The GPUs of its worker when it was handed out: the worker may register with others later.
  add column gpu_count          integer,
  add column gpu_tokens         text[],
  -- From hand-out to end, times those GPUs; what a worker reports counts up to it.
  add column gpu_hours_measured numeric(18, 9);

alter table billing_records
  -- What each attempt used, as it was reported, measured and billed.
  add column attempts jsonb not null default '[]';

-- What a month bears: one line for each job, more for a deployment that lives in more months than one.
-- Written once and never changed; a month's summary is the sum of its lines.
create table billing_lines (
  line_id            text primary key,
  user_id            text not null references users,
  month              date not null check (extract(day from month) = 1),
  -- Null: storage.
  job_id             text references jobs,
  cost_usd           numeric(18, 6) not null check (cost_usd >= 0),
  gpu_hours          numeric not null default 0 check (gpu_hours >= 0 and gpu_hours < 'NaN'),
  tokens             numeric not null default 0 check (tokens >= 0 and tokens < 'NaN'),
  -- GPU hours of attempts that the bill leaves out.
  unbilled_gpu_hours numeric not null default 0
                     check (unbilled_gpu_hours >= 0 and unbilled_gpu_hours < 'NaN'),
  -- A job without a bill has a line of nothing, for what was metered.
  is_billed          boolean not null default true,
  -- Of storage: how much, and at what price.
  gb_months          numeric(24, 9),
  rate_card          jsonb,
  created_at         timestamptz not null default now(),
  -- When the payment processor has taken it, and when to try next.
  exported_at        timestamptz,
  export_due_at      timestamptz not null default now(),
  export_tries       integer not null default 0,
  export_error       text,
  -- Since when the processor may have it without our knowing: the first request whose answer did not
  -- arrive. It tells a repeated line for about a day; after that, sending it again may bill it twice.
  export_asked_at    timestamptz
);
create index billing_lines_by_month on billing_lines (user_id, month, line_id);
create unique index billing_lines_one_per_month on billing_lines (job_id, month);
create index billing_lines_to_export on billing_lines (export_due_at)
  where exported_at is null and cost_usd > 0;

-- Sums of lines, so that a month of a million jobs is read like one of ten. Kept by the trigger below;
-- `forge-server billing recompute --check` proves them equal to the plain sums.
create table billing_totals (
  user_id            text not null,
  month              date not null,
  dimension          text not null check (dimension in ('job_type', 'tag', 'pipeline', 'storage')),
  value              text not null,
  records            bigint not null,
  cost_usd           numeric(24, 6) not null,
  gpu_hours          numeric not null,
  tokens             numeric not null,
  unbilled_gpu_hours numeric not null,
  primary key (user_id, month, dimension, value)
);
create index billing_totals_by_cost on billing_totals (user_id, month, dimension, cost_usd desc, value)
  where dimension in ('tag', 'pipeline');

-- A line counts under its job's type, its pipeline and each of its tags.
create function dimensions_of(job_type text, pipeline_id text, tags text[])
returns table (dimension text, value text) language sql immutable as $$
  select 'job_type', job_type where job_type is not null
  union all select 'storage', 'storage' where job_type is null
  union all select 'pipeline', pipeline_id where pipeline_id is not null
  union all select distinct 'tag', tag from unnest(tags) tag
$$;

create function add_to_billing_totals() returns trigger language plpgsql as $$
begin
  insert into billing_totals as t (user_id, month, dimension, value, records, cost_usd, gpu_hours, tokens,
                                   unbilled_gpu_hours)
  select l.user_id, l.month, d.dimension, d.value, count(*) filter (where l.is_billed), sum(l.cost_usd),
         sum(l.gpu_hours), sum(l.tokens), sum(l.unbilled_gpu_hours)
  from added l left join jobs j using (job_id)
  cross join lateral dimensions_of(j.job_type, j.pipeline_id, j.tags) d
  group by 1, 2, 3, 4
  -- Rows are taken in one order, whoever adds: no two of them wait for each other.
  order by 1, 2, 3, 4
  on conflict (user_id, month, dimension, value) do update set
    records = t.records + excluded.records, cost_usd = t.cost_usd + excluded.cost_usd,
    gpu_hours = t.gpu_hours + excluded.gpu_hours, tokens = t.tokens + excluded.tokens,
    unbilled_gpu_hours = t.unbilled_gpu_hours + excluded.unbilled_gpu_hours;
  return null;
end $$;
create trigger billing_lines_added after insert on billing_lines
  referencing new table as added for each statement execute function add_to_billing_totals();

-- What records of before do not tell is nothing.
update billing_records
set metrics = '{"input_tokens": 0, "output_tokens": 0, "stored_gb": 0, "gpu_hours_measured": 0}' || metrics;

-- What is billed stays: a line may only be marked as exported, and a record only be closed.
create function keep_billing_line() returns trigger language plpgsql as $$
begin
  if (new.line_id, new.user_id, new.month, new.job_id, new.cost_usd, new.gpu_hours, new.tokens,
      new.unbilled_gpu_hours, new.is_billed, new.gb_months, new.rate_card, new.created_at)
     is distinct from (old.line_id, old.user_id, old.month, old.job_id, old.cost_usd, old.gpu_hours,
      old.tokens, old.unbilled_gpu_hours, old.is_billed, old.gb_months, old.rate_card, old.created_at) then
    raise exception 'billing line % is written', old.line_id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger billing_lines_kept before update on billing_lines
  for each row execute function keep_billing_line();

create function keep_billing_record() returns trigger language plpgsql as $$
begin
  if old.state = 'final' then
    raise exception 'the bill of % is final', old.job_id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger billing_records_final before update on billing_records
  for each row execute function keep_billing_record();

-- Bytes that a tenant began and ceased to store, by month, and what they come to until that month's end:
-- all that the time integral of storage needs, however many artifacts there are.
create table storage_changes (
  user_id      text not null,
  month        date not null,
  bytes        numeric not null,
  byte_seconds numeric not null,
  primary key (user_id, month)
);

create function note_storage(whose text, change bigint, at timestamptz) returns void language sql as $$
  insert into storage_changes as s (user_id, month, bytes, byte_seconds)
  select whose, m.first, change,
         change * extract(epoch from (m.first + interval '1 month') at time zone 'UTC' - at)
  from (select date_trunc('month', at at time zone 'UTC') as first) m
  where change <> 0
  on conflict (user_id, month) do update set
    bytes = s.bytes + excluded.bytes, byte_seconds = s.byte_seconds + excluded.byte_seconds
$$;

create function note_artifact_storage() returns trigger language plpgsql as $$
begin
  if new.registered_at is not null and (tg_op = 'INSERT' or old.registered_at is null) then
    perform note_storage(new.user_id, new.size_bytes, new.created_at);
  end if;
  if new.deleted_at is not null and (tg_op = 'INSERT' or old.deleted_at is null) then
    perform note_storage(new.user_id, -new.size_bytes, new.deleted_at);
  end if;
  return null;
end $$;
create trigger artifacts_stored after insert or update of registered_at, deleted_at on artifacts
  for each row execute function note_artifact_storage();

insert into storage_changes (user_id, month, bytes, byte_seconds)
select user_id, date_trunc('month', at at time zone 'UTC'), sum(change), sum(change * extract(epoch from
       (date_trunc('month', at at time zone 'UTC') + interval '1 month') at time zone 'UTC' - at))
from (
  select user_id, size_bytes as change, created_at as at from artifacts
  where registered_at is not null and size_bytes is not null
  union all
  select user_id, -size_bytes, deleted_at from artifacts
  where deleted_at is not null and size_bytes is not null) changes
group by 1, 2;

-- Records of before: each counted in the month of its job's end.
insert into billing_lines (line_id, user_id, month, job_id, cost_usd, gpu_hours, tokens, exported_at)
select job_id || ':' || to_char(created_at at time zone 'UTC', 'YYYY-MM'), user_id,
       date_trunc('month', created_at at time zone 'UTC'), job_id, total_cost_usd,
       coalesce((metrics->>'gpu_hours')::numeric, 0),
       coalesce((metrics->>'tokens_generated')::numeric, 0), now()
from billing_records where state = 'final';

-- What a tenant may spend in a month.
create table budgets (
  user_id     text primary key references users,
  cap_usd     numeric(18, 6) check (cap_usd >= 0),
  warning_usd numeric(18, 6) check (warning_usd >= 0),
  updated_at  timestamptz not null default now(),
  check (warning_usd <= cap_usd)
);

alter table pipelines
  -- From where on its answers warn; its budget_usd is where they refuse.
  add column warning_usd numeric(18, 6) check (warning_usd >= 0);

alter table pipeline_steps
  -- The same of a job that is about to be written.
  add column expected_cost_usd numeric(18, 6) check (expected_cost_usd >= 0);

alter table jobs
  -- What it is expected to cost, as long as it has not ended; null where nobody asked.
  add column expected_cost_usd numeric(18, 6) check (expected_cost_usd >= 0);

-- Who changed what people pay, and may spend.
create table audit_entries (
  entry_id   bigint generated always as identity primary key,
  at         timestamptz not null default now(),
  -- Whose money it is about.
  user_id    text references users,
  action     text not null,
  subject    text not null,
  key_id     text not null,
  created_by text not null,
  scope      text not null,
  before     jsonb,
  after      jsonb
);
create index audit_by_user on audit_entries (user_id, entry_id desc);
create index audit_by_age on audit_entries (entry_id desc);
