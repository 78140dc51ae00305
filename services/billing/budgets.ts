import type { Outcome } from "../../core/jobs/states";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "../jobs/all-jobs";

/** A tenant's monthly budget. A limit that is null does not apply. */
export interface BudgetRow {
  user_id: string;
  cap_usd: number | null;
  warning_usd: number | null;
  updated_at: Date;
}

export async function findBudget(db: Queryable, userId: string) {
  return await maybeOne<BudgetRow>(db, "select * from budgets where user_id = $1", [userId]);
}

/** Locks the budget's row, so that submissions under it are checked one at a time. */
export async function lockBudget(db: Queryable, userId: string) {
  return await maybeOne<BudgetRow>(db, "select * from budgets where user_id = $1 for update", [
    userId,
  ]);
}

export async function setBudget(
  db: Queryable,
  userId: string,
  capUsd: number | null,
  warningUsd: number | null,
): Promise<BudgetRow> {
  const row = await maybeOne<BudgetRow>(
    db,
    `insert into budgets (user_id, cap_usd, warning_usd) values ($1, $2, $3)
     on conflict (user_id) do update
       set cap_usd = excluded.cap_usd, warning_usd = excluded.warning_usd, updated_at = now()
     returning *`,
    [userId, capUsd, warningUsd],
  );
  if (!row) throw new Error("an upsert returned no row");
  return row;
}

/**
 * Expected cost of a tenant's unfinished jobs, and of jobs that a pipeline is about to insert.
 * - A job may be unfinished although its bill is already written, for example while the object
 *   store is full. The sum includes the bill's amount, because the month's totals include it only
 *   after the job has completed.
 * - For a job submitted before the budget existed, uses the median cost of the tenant's last 50
 *   completed jobs of its type.
 *
 * @param billed the attempt outcomes that are billed even if the job fails. The sum also includes
 *   the expected cost of failed jobs with such an attempt until their billing line is written, but
 *   for at most one day after the failure. The line may be late: a job's workflow writes it, and
 *   can't do so while Temporal is down.
 */
export async function sumExpected(
  db: Queryable,
  userId: string,
  billed: ReadonlySet<Outcome>,
): Promise<number> {
  const row = await maybeOne<{ expected: number }>(
    db,
    `with unfinished as materialized (
       select j.job_id, j.job_type, coalesce(b.total_cost_usd, j.expected_cost_usd) as expected_cost_usd
       from jobs j left join billing_records b on b.job_id = j.job_id and b.state = 'final'
       where j.user_id = $1 and j.status not in ('completed', 'failed') and j.deployment_id is null
       union all
       select s.job_id, s.job_type, s.expected_cost_usd
       from pipelines p join pipeline_steps s using (pipeline_id)
       where p.user_id = $1 and p.status in ('running', 'waiting_approval') and s.status = 'running'
         and not s.reused and not exists (select from jobs j where j.job_id = s.job_id)
       union all
       select j.job_id, j.job_type, j.expected_cost_usd from jobs j
       where cardinality($2::text[]) > 0 and j.user_id = $1 and j.status = 'failed'
         and j.deployment_id is null and j.completed_at > now() - interval '1 day'
         and exists (select from attempts a where a.job_id = j.job_id and a.outcome = any($2)
                       and a.started_at is not null)
         and not exists (select from billing_lines l where l.job_id = j.job_id)),
     typical as (
       select t.job_type, (
         select percentile_cont(0.5) within group (order by lately.total_cost_usd::float8)
         from (select b.total_cost_usd from ${ALL_JOBS} j join billing_records b using (job_id)
               where j.user_id = $1 and j.job_type = t.job_type and j.status = 'completed'
               order by j.completed_at desc limit 50) lately)::numeric as cost
       from (select distinct job_type from unfinished where expected_cost_usd is null) t)
     select coalesce(sum(coalesce(u.expected_cost_usd, typical.cost)), 0) as expected
     from unfinished u left join typical using (job_type)`,
    [userId, [...billed]],
  );
  return row?.expected ?? 0;
}
