import type { TenantScope } from "../../core/accounts/permissions";
import type { MeasuredOutput } from "../../core/artifacts/manifest";
import type { MonthShare } from "../../core/billing/accrual";
import type { WorkDetails } from "../../core/billing/details";
import type { LineUsage } from "../../core/billing/line-usage";
import type { AttemptFacts, MeteredAttempt } from "../../core/billing/metering";
import type { Bill } from "../../core/billing/price-job";
import type { RateCard } from "../../core/billing/rate-card";
import type { Metrics, StoredBillingRecord } from "../../core/billing/record";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { JobType } from "../../core/jobs/job-types";
import { listPage, type Page, Where } from "../../platform/postgres/pages";
import { Parameters } from "../../platform/postgres/parameters";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { CLOSED_AFTER, DAYS_OF_RECORD } from "./lifetime";

export interface BillingRow extends StoredBillingRecord {
  attempt: number;
  /**
   * A random id, generated when the record is written. If the database loses a record and Forge
   * writes it again, the new record has another id. Null in records that an earlier release wrote.
   */
  version: string | null;
}

/**
 * SQL: the columns of record `b`, and the column `days_so_far`. If the record is open (`accruing`),
 * this column is the deployment's lifetime so far, in days; otherwise it is null.
 */
const WITH_DAYS = `b.*, case when b.state = 'accruing' then ${DAYS_OF_RECORD} end as days_so_far`;

/**
 * An attempt, with the facts that its bill is computed from and with details that the billing
 * record shows.
 */
interface BillableAttempt extends AttemptFacts {
  metrics: Record<string, unknown> | null;
  result: Record<string, unknown> | null;
  gpu_name: string;
}

/** The inputs of a job's bill. */
export interface BillableRow {
  user_id: string;
  job_type: JobType;
  payload: Record<string, unknown>;
  params: Record<string, unknown>;
  rate_card: RateCard;
  /** Attempts that a worker started, up to the one that ended the job. */
  attempts: BillableAttempt[];
  /**
   * The job adds a placement to an existing deployment. The job's bill is 0 USD, because the
   * deployment has its own bill.
   */
  is_placement: boolean;
  /** The record is for a new deployment and stays open until the deployment stops. */
  accrues: boolean;
  /** True if the job has a billing line without cost, which only counts the job's GPU hours. */
  has_unbilled_line: boolean;
  /**
   * A digest of how and when these attempts ended. A bill is written only if the digest is still
   * the same. It differs if the database was restored and has lost the end of an attempt.
   */
  ends_digest: string | null;
}

/**
 * SQL: whether attempt `had` counts for the bill of job `j`. Attempt `a` is the one that ended the
 * job. `had` counts if a worker started it, if it has ended, and if it is not later than `a`.
 */
const BILLED = `had.job_id = j.job_id and had.attempt <= a.attempt and had.started_at is not null
     and had.state = 'ended'`;

/**
 * SQL: computes `ends_digest` from the outcome and the times of each attempt. The digest changes if
 * the database loses the end of an attempt and the attempt then ends a second time.
 */
const ENDS_DIGEST = `(
  select md5(string_agg(concat_ws(' ', had.attempt, had.outcome, extract(epoch from had.started_at),
                                  extract(epoch from had.ended_at)), ', ' order by had.attempt))
  from attempts had where ${BILLED})`;

/** SQL: the columns of a BillableRow, for job `j` and the attempt `a` that ended it. */
export const BILLABLE = `
  j.user_id, j.job_type, j.payload, j.params, j.rate_card, j.deployment_id is not null as is_placement,
  j.job_type = '${DEPLOYMENT_TYPE}' and j.deployment_id is null and a.outcome = 'completed' as accrues,
  exists (select from billing_lines l where l.job_id = j.job_id and not l.is_billed) as has_unbilled_line,
  ${ENDS_DIGEST} as ends_digest,
  (select coalesce(jsonb_agg(jsonb_build_object(
     'attempt', had.attempt, 'outcome', had.outcome, 'worker_id', had.worker_id,
     'gpu_tokens', coalesce(had.gpu_tokens, w.gpu_tokens), 'usage', had.usage,
     'gpu_hours_measured', coalesce(had.gpu_hours_measured, 0),
     'metrics', had.metrics, 'result', had.result, 'gpu_name', w.gpu_name,
     'seconds', greatest(0, extract(epoch from had.ended_at - had.started_at))) order by had.attempt), '[]')
   from attempts had join workers w on w.worker_id = had.worker_id
   where ${BILLED}) as attempts`;

export async function findBillable(db: Queryable, jobId: string, attempt: number) {
  return await maybeOne<BillableRow>(
    db,
    `select ${BILLABLE} from jobs j join attempts a using (job_id)
     where j.job_id = $1 and a.attempt = $2 and a.state = 'ended'`,
    [jobId, attempt],
  );
}

/**
 * Reads the inputs of the bill of a job that has failed or is about to fail. Also reads the number
 * of the job's last attempt. Returns undefined if that attempt has not ended, or if its outcome is
 * `completed`: such a job fails only if an operator ends it, and is not billed.
 */
export async function findFailedBillable(db: Queryable, jobId: string) {
  return await maybeOne<BillableRow & { attempt: number }>(
    db,
    `select ${BILLABLE}, a.attempt from jobs j join attempts a using (job_id)
     where j.job_id = $1 and a.state = 'ended' and a.outcome <> 'completed'
       and not exists (select from attempts later where later.job_id = j.job_id and later.attempt > a.attempt)`,
    [jobId],
  );
}

/**
 * SQL: locks the job's row, because an operator may end the job at the same time, which deletes the
 * bill (end-job-by-operator.ts). If the operator's transaction locks the row first, this statement
 * waits for it, and then Postgres checks this statement's conditions again. If this statement is
 * first, the operator's transaction waits for it, and then sees the bill.
 */
const WAIT_FOR_OPERATOR = "for share of j";

export interface NewRecord {
  userId: string;
  jobType: JobType;
  metrics: Metrics;
  bill: Bill;
  rateCard: RateCard;
  gpuTokens: string[];
  attempts: MeteredAttempt[];
  details: WorkDetails;
  /** The `ends_digest` of the `BillableRow` that this record was computed from. */
  endsDigest: string | null;
  accrues: boolean;
  /** What Forge measured of the job's output for this bill. Stored for the manifest. */
  measured: MeasuredOutput | null;
}

/**
 * Writes a job's billing record, unless the job already has one. The record's `created_at` is the
 * time at which the job's last attempt ended. If the job failed, also writes its billing line. If
 * the job succeeded, a trigger writes the line when the job becomes `completed` (migration 0044).
 * Idempotent.
 *
 * @returns the record; undefined if nothing was written.
 */
export async function insertBillingRecord(
  db: Queryable,
  jobId: string,
  attempt: number,
  record: NewRecord,
  used: LineUsage,
): Promise<BillingRow | undefined> {
  const parameters = new Parameters();
  const job = parameters.add(jobId);
  const ending = parameters.add(attempt);
  const columns = {
    user_id: record.userId,
    job_type: record.jobType,
    metrics: record.metrics,
    unit_costs: record.bill.unitCosts,
    cost_breakdown: record.bill.costBreakdown,
    total_cost_usd: record.bill.totalCostUsd,
    rate_card: record.rateCard,
    gpu_tokens: record.gpuTokens,
    formula: record.bill.formula,
    state: record.accrues ? "accruing" : "final",
    attempts: JSON.stringify(record.attempts),
    details: record.details,
  };
  const endsDigest = parameters.add(record.endsDigest);
  const given = parameters.addAll(Object.values(columns));
  const measured = parameters.add(record.measured);
  const line = parameters.addAll([used.gpuHours, used.tokens, used.unbilledGpuHours]);
  return await maybeOne<BillingRow>(
    db,
    `with record as (
       insert into billing_records (job_id, attempt, created_at, version, ${Object.keys(columns).join(", ")})
       select ${job}, ${ending}, a.ended_at, gen_random_uuid(), ${given}
       from jobs j join attempts a using (job_id)
       where job_id = ${job} and a.attempt = ${ending}
         -- Insert only if the ends of the attempts have not changed since the bill was computed. A
         -- restored database may lack the end of an attempt.
         and ${ENDS_DIGEST} is not distinct from ${endsDigest}
         -- An operator may have ended a job whose attempt completed: such a job is not billed.
         and (j.status <> 'failed' or a.outcome <> 'completed')
       ${WAIT_FOR_OPERATOR}
       on conflict (job_id) do nothing returning *),
     measured as (
       update artifacts set measured = ${measured}
       from record where artifacts.job_id = record.job_id and registered_at is null),
     line as (
       insert into billing_lines (line_id, user_id, month, job_id, cost_usd, gpu_hours, tokens,
                                  unbilled_gpu_hours)
       select ${LINE_ID("job_id", "created_at at time zone 'UTC'")}, user_id,
              ${MONTH_OF_LINE("created_at")}, job_id, total_cost_usd, ${line}
       from record where state = 'final' and not exists (
         select from attempts a
         where a.job_id = ${job} and a.attempt = ${ending} and a.outcome = 'completed'))
     select ${WITH_DAYS} from record b`,
    parameters.values,
  );
}

/**
 * SQL: the id of a billing line. It contains the month of the attempt's end or, for a deployment,
 * the month that the line is for. So the id does not depend on when the line is written.
 */
const LINE_ID = (id: string, month: string): string =>
  `${id} || ':' || to_char(${month}, 'YYYY-MM')`;

/**
 * SQL: the month of the billing line for an attempt that ended at `time`. This is the month of
 * `time`, or the open month if the month of `time` is closed: totals of closed months never change.
 */
const MONTH_OF_LINE = (time: string): string =>
  `date_trunc('month', greatest(${time}, now() - ${CLOSED_AFTER}) at time zone 'UTC')`;

/**
 * Deletes the record of a job that does not complete, unless a billing line was written for the
 * job.
 */
export async function deleteUnbilledRecord(db: Queryable, jobId: string): Promise<void> {
  await execute(
    db,
    `delete from billing_records where job_id = $1
       and not exists (select from billing_lines l where l.job_id = $1)`,
    [jobId],
  );
}

/**
 * Writes a line without cost for a job that is not billed, so that the month's totals include its
 * GPU hours.
 *
 * @param endsDigest the `ends_digest` of the `BillableRow` from which the hours were computed. If
 *   the digest has changed since then, nothing is written. Null if the caller has locked the job's
 *   last attempt: then the digest can't change.
 * @returns whether the job now has a billing line. False if it had none and the digest has changed.
 */
export async function insertUnbilledLine(
  db: Queryable,
  jobId: string,
  attempt: number,
  unbilledGpuHours: number,
  endsDigest: string | null = null,
): Promise<boolean> {
  const inserted = await execute(
    db,
    `insert into billing_lines (line_id, user_id, month, job_id, cost_usd, unbilled_gpu_hours, is_billed)
     select ${LINE_ID("job_id", "a.ended_at at time zone 'UTC'")}, j.user_id,
            ${MONTH_OF_LINE("a.ended_at")}, job_id, 0, $3, false
     from jobs j join attempts a using (job_id) where job_id = $1 and a.attempt = $2
       and ($4::text is null or ${ENDS_DIGEST} = $4)
     on conflict do nothing`,
    [jobId, attempt, unbilledGpuHours, endsDigest],
  );
  if (inserted > 0) return true;
  const known = await maybeOne(db, "select from billing_lines where job_id = $1 limit 1", [jobId]);
  return known !== undefined;
}

/**
 * Writes one billing line per share of a deployment's cost; a share belongs to one month. The
 * deployment's first line also has the usage of the deploy job (`used`).
 */
export async function insertShares(
  db: Queryable,
  jobId: string,
  shares: MonthShare[],
  used: LineUsage,
) {
  return await execute(
    db,
    `insert into billing_lines (line_id, user_id, month, job_id, cost_usd, gpu_hours, tokens,
                                unbilled_gpu_hours)
     select ${LINE_ID("b.job_id", "s.month")}, b.user_id, s.month, b.job_id, s.cost,
            case when is_first then $4::numeric else 0 end,
            case when is_first then $5::numeric else 0 end,
            case when is_first then $6::numeric else 0 end
     from billing_records b, unnest($2::date[], $3::numeric[]) with ordinality s (month, cost, place),
          lateral (select s.place = 1 and not exists (
            select from billing_lines l where l.job_id = b.job_id) as is_first) line
     where b.job_id = $1`,
    [
      jobId,
      shares.map(({ month }) => month),
      shares.map(({ costUsd }) => costUsd),
      used.gpuHours,
      used.tokens,
      used.unbilledGpuHours,
    ],
  );
}

/**
 * Closes the record of a deployment by one compare-and-set. Returns false if the record is closed
 * already.
 */
export async function closeRecord(
  db: Queryable,
  jobId: string,
  metrics: Metrics,
  bill: Bill,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update billing_records set state = 'final', metrics = $2, unit_costs = $3, cost_breakdown = $4,
            total_cost_usd = $5, formula = $6
     where job_id = $1 and state = 'accruing'`,
    [jobId, metrics, bill.unitCosts, bill.costBreakdown, bill.totalCostUsd, bill.formula],
  );
  return changed === 1;
}

export async function findBillingRecord(db: Queryable, jobId: string, tenantScope: TenantScope) {
  return await maybeOne<BillingRow>(
    db,
    `select ${WITH_DAYS} from billing_records b
     where job_id = $1 and ($2::text is null or user_id = $2)`,
    [jobId, tenantScope],
  );
}

/** The open records of these jobs. Only records of live deployments are open. */
export async function listAccruingRecords(db: Queryable, jobIds: string[]) {
  return await all<BillingRow>(
    db,
    `select ${WITH_DAYS} from billing_records b where job_id = any($1) and state = 'accruing'`,
    [jobIds],
  );
}

export interface RecordFilter {
  jobTypes?: JobType[] | undefined;
  /** `createdFrom` is inclusive, `createdBefore` exclusive. */
  createdFrom?: string | undefined;
  createdBefore?: string | undefined;
}

/** One page of records, newest first or most expensive first. */
export async function listBillingRecords(
  db: Queryable,
  tenantScope: TenantScope,
  filter: RecordFilter,
  byCost: boolean,
  page: Page,
) {
  return await listPage<BillingRow>(db, {
    select: WITH_DAYS,
    from: "billing_records b",
    order: [byCost ? "total_cost_usd" : "created_at", "job_id"],
    orderedBy: byCost ? "amount" : "time",
    where: new Where()
      .inTenantScope(tenantScope)
      .andIfSet(filter.jobTypes, (types) => `job_type = any(${types})`)
      .andIfSet(filter.createdFrom, (time) => `created_at >= ${time}::timestamptz`)
      .andIfSet(filter.createdBefore, (time) => `created_at < ${time}::timestamptz`),
    page,
  });
}

/**
 * One batch of all records, ordered by job id.
 *
 * @param after the last job id of the previous batch; "" for the first batch.
 */
export async function readRecords(db: Queryable, after: string, limit: number) {
  return await all<BillingRow>(
    db,
    "select * from billing_records where job_id > $1 order by job_id limit $2",
    [after, limit],
  );
}
