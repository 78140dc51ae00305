import type { JobType } from "../../core/job-types";
import type { Bill, RateCard, Usage } from "../../core/pricing";
import { listPage, type Page, Where, type WithPosition } from "./pages";
import { execute, maybeOne, type Queryable } from "./pool";
import type { Viewer } from "./viewer";

export interface BillingRow {
  job_id: string;
  user_id: string;
  job_type: JobType;
  attempt: number;
  metrics: Usage;
  unit_costs: Bill["unitCosts"];
  cost_breakdown: Bill["costBreakdown"];
  total_cost_usd: number;
  rate_card: RateCard;
  gpu_tokens: string[];
  formula: string;
  state: "accruing" | "final";
  created_at: Date;
}

/** Facts for a job's bill: the winning attempt, and the worker that ran it. */
export interface BillableRow {
  user_id: string;
  job_type: JobType;
  rate_card: RateCard;
  /** Null: no worker had it. */
  usage: Usage | null;
  gpu_tokens: string[];
}

export async function findBillable(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<BillableRow | undefined> {
  return await maybeOne<BillableRow>(
    db,
    `select j.user_id, j.job_type, j.rate_card, a.usage, w.gpu_tokens
     from jobs j join attempts a using (job_id) left join workers w on w.worker_id = a.worker_id
     where j.job_id = $1 and a.attempt = $2 and a.outcome in ('completed', 'cancelled')`,
    [jobId, attempt],
  );
}

/** Writes the one record of a job, dated by its outcome; a second time changes nothing. */
export async function insertBillingRecord(
  db: Queryable,
  jobId: string,
  attempt: number,
  billable: BillableRow,
  bill: Bill,
): Promise<void> {
  await execute(
    db,
    `insert into billing_records (job_id, user_id, job_type, attempt, metrics, unit_costs,
                                  cost_breakdown, total_cost_usd, rate_card, gpu_tokens, formula,
                                  created_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ended_at
     from attempts where job_id = $1 and attempt = $4
     on conflict (job_id) do nothing`,
    [
      jobId,
      billable.user_id,
      billable.job_type,
      attempt,
      billable.usage,
      bill.unitCosts,
      bill.costBreakdown,
      bill.totalCostUsd,
      billable.rate_card,
      billable.gpu_tokens,
      bill.formula,
    ],
  );
}

export async function findBillingRecord(
  db: Queryable,
  jobId: string,
  viewer: Viewer,
): Promise<BillingRow | undefined> {
  return await maybeOne<BillingRow>(
    db,
    "select * from billing_records where job_id = $1 and ($2::text is null or user_id = $2)",
    [jobId, viewer],
  );
}

/** One page of records, newest first. */
export async function listBillingRecords(
  db: Queryable,
  viewer: Viewer,
  page: Page,
): Promise<WithPosition<BillingRow>[]> {
  const where = new Where().seenBy(viewer);
  const order: [string, string] = ["created_at", "job_id"];
  return await listPage<BillingRow>(db, {
    select: "*",
    from: "billing_records",
    order,
    where,
    page,
  });
}

export interface SummaryRow {
  total_cost_usd: number;
  gpu_hours_total: number;
  tokens_total: number;
  by_job_type: Record<string, number>;
}

/** A tenant's month, summed in NUMERIC. `month` is its first day, UTC. */
export async function summarise(db: Queryable, userId: string, month: string): Promise<SummaryRow> {
  const row = await maybeOne<SummaryRow>(
    db,
    `with month as (
       select job_type, sum(total_cost_usd) as cost,
              sum((metrics->>'gpu_hours')::numeric) as gpu_hours,
              sum((metrics->>'tokens_generated')::numeric) as tokens
       from billing_records
       where user_id = $1 and created_at >= $2::timestamp at time zone 'UTC'
         and created_at < ($2::timestamp + interval '1 month') at time zone 'UTC'
       group by job_type)
     select coalesce(sum(cost), 0) as total_cost_usd, coalesce(sum(gpu_hours), 0) as gpu_hours_total,
            coalesce(sum(tokens), 0) as tokens_total,
            coalesce(jsonb_object_agg(job_type, cost), '{}') as by_job_type
     from month`,
    [userId, month],
  );
  if (!row) throw new Error("an aggregate returned no row");
  return row;
}
