import { all, execute, type Queryable } from "../../platform/postgres/pool";
import { ALL_ATTEMPTS, ALL_JOBS } from "../jobs/all-jobs";
import { rebuildDays } from "./billing-days";

/** Maximum number of reported differences per kind. */
export const MAX_DIFFERENCES = 1_000;

/** SQL: each total, computed from the billing lines. */
const EXPECTED = `
  select l.user_id, l.month, d.dimension, d.value, count(*) filter (where l.is_billed) as records,
         sum(l.cost_usd) as cost_usd, sum(l.gpu_hours) as gpu_hours, sum(l.tokens) as tokens,
         sum(l.unbilled_gpu_hours) as unbilled_gpu_hours
  from billing_lines l left join ${ALL_JOBS} j using (job_id)
  cross join lateral dimensions_of(j.job_type, j.pipeline_id, j.tags) d
  group by 1, 2, 3, 4`;

export interface WrongTotal {
  user_id: string;
  month: string;
  dimension: string;
  value: string;
  /** The stored row's numbers as text; null if there is no row. */
  stored: string | null;
  /** The same numbers computed from the lines; null if there are no lines. */
  recomputed: string | null;
}

/** Totals that differ from the sum of their lines. */
export async function listWrongTotals(db: Queryable): Promise<WrongTotal[]> {
  const numbers = (of: string): string =>
    `(${of}.records, ${of}.cost_usd, ${of}.gpu_hours, ${of}.tokens, ${of}.unbilled_gpu_hours)`;
  return await all<WrongTotal>(
    db,
    `with recomputed as (${EXPECTED})
     select user_id, to_char(month, 'YYYY-MM') as month, dimension, value,
            case when t.records is not null then ${numbers("t")}::text end as stored,
            case when recomputed.records is not null then ${numbers("recomputed")}::text end as recomputed
     from recomputed full join billing_totals t using (user_id, month, dimension, value)
     where ${numbers("recomputed")} is distinct from ${numbers("t")}
     order by 1, 2, 3, 4 limit ${MAX_DIFFERENCES}`,
  );
}

/** Final records of ended jobs, if the record's total differs from the sum of its lines. */
export async function listWrongSums(db: Queryable) {
  return await all<{ job_id: string; total: number; billed: number | null }>(
    db,
    `select b.job_id, b.total_cost_usd as total, sum(l.cost_usd) as billed
     from billing_records b join ${ALL_JOBS} j using (job_id) left join billing_lines l using (job_id)
     where b.state = 'final' and j.status in ('completed', 'failed')
     group by b.job_id having sum(l.cost_usd) is distinct from b.total_cost_usd
     order by 1 limit ${MAX_DIFFERENCES}`,
  );
}

/** Records that contradict their job or its attempts, and completed jobs without a record. */
export async function listInconsistentRecords(db: Queryable) {
  return await all<{ job_id: string; what: string }>(
    db,
    `select b.job_id, 'its rate card differs from its job''s' as what
     from billing_records b join ${ALL_JOBS} j using (job_id) where b.rate_card <> j.rate_card
     union all
     select b.job_id, 'attempt ' || a.attempt || ' has a different outcome or measured time'
     from billing_records b cross join lateral jsonb_to_recordset(b.attempts) stored (
       attempt int, outcome text, gpu_hours_measured numeric)
     join ${ALL_ATTEMPTS} a on a.job_id = b.job_id and a.attempt = stored.attempt
     where (a.outcome, coalesce(a.gpu_hours_measured, 0)) is distinct from (stored.outcome, stored.gpu_hours_measured)
     union all
     select job_id, 'the job has completed, but its record is missing' from ${ALL_JOBS} j
     where status = 'completed' and not exists (select from billing_records b where b.job_id = j.job_id)
     order by 1 limit ${MAX_DIFFERENCES}`,
  );
}

/**
 * Recomputes all rows of `billing_totals` and `billing_days` from the lines. Call in a transaction:
 * this locks the table of lines, so no other transaction can write lines until the caller's
 * transaction ends.
 *
 * @returns the number of rows of `billing_totals`.
 */
export async function rebuildTotals(db: Queryable): Promise<number> {
  await execute(db, "lock table billing_lines in share row exclusive mode");
  await rebuildDays(db);
  await execute(db, "delete from billing_totals");
  return await execute(
    db,
    `insert into billing_totals (user_id, month, dimension, value, records, cost_usd, gpu_hours, tokens,
                                 unbilled_gpu_hours) ${EXPECTED}`,
  );
}
