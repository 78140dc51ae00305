-- A tenant's records by cost, the highest first.
create index billing_by_cost on billing_records (user_id, total_cost_usd desc, job_id desc);
