-- For each tenant with storage the first month that may still lack its line: all before it have theirs, or bear none.
-- So closing months need not look at all months of all tenants. Kept by triggers, because servers of the release
-- before write lines and storage, too.
create table storage_months (
  user_id    text primary key,
  open_month date not null
);

create function open_storage_month() returns trigger language plpgsql as $$
begin
  insert into storage_months (user_id, open_month) values (new.user_id, new.month)
  on conflict (user_id) do update set open_month = excluded.open_month
    where storage_months.open_month > excluded.open_month;
  return null;
end $$;
create trigger storage_changes_opened after insert on storage_changes
  for each row execute function open_storage_month();

create function close_storage_month() returns trigger language plpgsql as $$
begin
  update storage_months set open_month = (new.month + interval '1 month')::date
  where user_id = new.user_id and open_month = new.month;
  return null;
end $$;
create trigger billing_lines_of_storage after insert on billing_lines
  for each row when (new.job_id is null) execute function close_storage_month();

-- A card that comes into force in a month that bore nothing, as it can after the clock was set back.
create function reopen_storage_months() returns trigger language plpgsql as $$
declare
  since date := date_trunc('month', new.effective_from at time zone 'UTC');
  whose text := to_jsonb(new)->>'user_id';
begin
  update storage_months s
  set open_month = greatest(since, (select min(month) from storage_changes c where c.user_id = s.user_id))
  where s.open_month > since and (whose is null or s.user_id = whose);
  return null;
end $$;
create trigger rate_cards_priced after insert or update of effective_from on rate_cards
  for each row execute function reopen_storage_months();
create trigger tenant_rate_cards_priced after insert or update on tenant_rate_cards
  for each row execute function reopen_storage_months();

insert into storage_months select user_id, min(month) from storage_changes group by user_id;
