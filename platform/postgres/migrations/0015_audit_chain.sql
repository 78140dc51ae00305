-- The audit log is append-only, and each entry carries the hash of the one before: what was changed or
-- taken out in the middle shows. What was taken off its end shows against a hash that was noted elsewhere.
alter table audit_entries alter column entry_id drop identity;
alter table audit_entries add column prev_hash bytea, add column hash bytea;

-- One text for the same facts, on every server and in every time zone.
create function audit_text(entry audit_entries) returns text language sql stable as $$
  select jsonb_build_array(entry.entry_id, extract(epoch from entry.at), entry.user_id, entry.action,
                           entry.subject, entry.key_id, entry.created_by, entry.scope,
                           entry.before, entry.after)::text
$$;

create function chain_audit_entry() returns trigger language plpgsql as $$
declare
  last audit_entries;
begin
  -- One after the other, to the end of the transaction: a chain has one end.
  perform pg_advisory_xact_lock(7263010);
  select * into last from audit_entries order by entry_id desc limit 1;
  new.entry_id := coalesce(last.entry_id, 0) + 1;
  new.prev_hash := coalesce(last.hash, '');
  new.hash := sha256(new.prev_hash || convert_to(audit_text(new), 'UTF8'));
  return new;
end $$;

do $$
declare
  entry audit_entries;
  last_hash bytea := '';
begin
  for entry in select * from audit_entries order by entry_id loop
    update audit_entries
    set prev_hash = last_hash, hash = sha256(last_hash || convert_to(audit_text(entry), 'UTF8'))
    where entry_id = entry.entry_id returning hash into last_hash;
  end loop;
end $$;

alter table audit_entries alter column prev_hash set not null, alter column hash set not null;

create trigger audit_chained before insert on audit_entries
  for each row execute function chain_audit_entry();

create function keep_audit_entry() returns trigger language plpgsql as $$
begin
  raise exception 'audit entries stay as they are' using errcode = 'check_violation';
end $$;
create trigger audit_kept before update or delete on audit_entries
  for each row execute function keep_audit_entry();
create trigger audit_not_truncated before truncate on audit_entries
  for each statement execute function keep_audit_entry();
