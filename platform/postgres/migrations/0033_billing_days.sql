-- What jobs came to on each day (UTC) by type, dated like their records, or by the
-- first day of the month in which a late line counts. A deployment's bill is spread over the
-- days that it lived when it is asked for: it is not in here.
create table billing_days (
  user_id  text not null,
  day      date not null,
  job_type text not null,
  cost_usd numeric(24, 6) not null,
  primary key (user_id, day, job_type)
);

-- Totals first: triggers fire in the order of their names, and rows are locked in that order by everybody.
create function add_to_billing_days() returns trigger language plpgsql as $$
begin
  insert into billing_days as d (user_id, day, job_type, cost_usd)
  select l.user_id, greatest((b.created_at at time zone 'UTC')::date, l.month), b.job_type, sum(l.cost_usd)
  from added l join billing_records b using (job_id)
  where not exists (select from deployments p where p.job_id = l.job_id)
  group by 1, 2, 3
  order by 1, 2, 3
  on conflict (user_id, day, job_type) do update set cost_usd = d.cost_usd + excluded.cost_usd;
  return null;
end $$;
create trigger billing_lines_dated after insert on billing_lines
  referencing new table as added for each statement execute function add_to_billing_days();

insert into billing_days (user_id, day, job_type, cost_usd)
select l.user_id, greatest((b.created_at at time zone 'UTC')::date, l.month), b.job_type, sum(l.cost_usd)
from billing_lines l join billing_records b using (job_id)
where not exists (select from deployments p where p.job_id = l.job_id)
group by 1, 2, 3;
