-- A job that completes is billed by the same transaction: the line of its month is written when its status is. Its
-- record is drawn up before, and bears nothing until then, so that a job which an operator ends has cost nothing.
-- Here and not in the servers' code: the release before this one may complete a job whose record this one drew up.
create function bear_bill() returns trigger language plpgsql as $$
begin
  insert into billing_lines (line_id, user_id, month, job_id, cost_usd, gpu_hours, tokens, unbilled_gpu_hours)
  select b.job_id || ':' || to_char(b.created_at at time zone 'UTC', 'YYYY-MM'), b.user_id,
         -- A month is closed an hour after its end: its sums never change.
         date_trunc('month', greatest(b.created_at, now() - interval '1 hour') at time zone 'UTC'),
         b.job_id, b.total_cost_usd, coalesce((b.metrics->>'gpu_hours')::numeric, 0),
         coalesce((b.metrics->>'input_tokens')::numeric, 0)
           + coalesce((b.metrics->>'output_tokens')::numeric, 0),
         (select coalesce(sum((a->'usage'->>'gpu_hours')::numeric), 0)
          from jsonb_array_elements(b.attempts) a where not (a->>'billed')::boolean)
  from billing_records b where b.job_id = new.job_id and b.state = 'final'
  on conflict do nothing;
  return null;
end $$;
-- At the end of the transaction: a month's sums are every job's of its tenant, so they are locked last.
create constraint trigger jobs_billed after update of status on jobs deferrable initially deferred
  for each row when (new.status = 'completed' and old.status <> 'completed') execute function bear_bill();
