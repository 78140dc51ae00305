import { setTimeout as sleep } from "node:timers/promises";
import type { MeasuredOutput } from "../../core/artifacts/manifest";
import { detailsOf, type WorkDetails } from "../../core/billing/details";
import { type LineUsage, unbilledHours, usageOfLine } from "../../core/billing/line-usage";
import {
  countOf,
  type MeteredAttempt,
  meterAttempt,
  NOTHING_COUNTED,
} from "../../core/billing/metering";
import { boundsOf, readsRows } from "../../core/billing/plausible";
import { priceJob } from "../../core/billing/price-job";
import { type Metrics, metricsOf, portionsOf } from "../../core/billing/record";
import type { Queryable } from "../../platform/postgres/pool";
import {
  type BillableRow,
  type BillingRow,
  findBillable,
  findFailedBillable,
  insertBillingRecord,
  insertUnbilledLine,
  type NewRecord,
} from "../../services/billing/billing-records";
import { findRows } from "../../services/billing/estimate-job";
import { requireRecord, syncRecordFile } from "../../services/billing/record-file";
import type { Context } from "../../services/context";
import type { AttemptInput } from "../context";

/** Size of an artifact's files in Forge's store, in bytes. */
export const sizeOf = ({ files }: MeasuredOutput): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

/** Number of rows of the artifact's table; null if the artifact has no readable table. */
const rowsOf = (output: MeasuredOutput | null): number | null =>
  output?.table?.isRead ? output.table.numRows : null;

interface WrittenBill {
  record: BillingRow;
  /**
   * False if another call wrote the record first. The record is then based on that call's
   * measurement of the output.
   */
  isNew: boolean;
}

/**
 * Writes the job's billing record with the rate card pinned at submission. Also stores the
 * measurement of the job's output, which the manifest uses. Idempotent: if the job has a record,
 * writes nothing and returns that record. A deployment's lifetime is billed later, when the
 * deployment stops (services/deployments/stop-deployment.ts).
 */
export async function billJob(
  ctx: Context,
  input: AttemptInput,
  billable: BillableRow,
  output: MeasuredOutput | null = null,
): Promise<WrittenBill> {
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, output);
  const { record, used } = draftRecord(billable, attempts, rowsRead, output);
  const written = await insertBillingRecord(ctx.pool, input.jobId, input.attempt, record, used);
  if (written) return { record: written, isNew: true };
  return { record: await requireRecord(ctx, input.jobId), isNew: false };
}

/**
 * Writes a failed job's bill: a billing record or, if none of the job's attempts is billed, only a
 * billing line with the job's GPU hours.
 * @returns the record, if the job has one.
 */
type FailedBill = (db: Queryable) => Promise<BillingRow | undefined>;

/**
 * Prepares the bill of a job that has failed or is about to fail, and returns the function that
 * writes the bill. FORGE_BILL_OUTCOMES decides which attempts are billed, by their outcome. If at
 * least one attempt is billed, the bill is a billing record. Otherwise, the bill is a billing line
 * with only the job's GPU hours. Returns undefined if there is nothing to write, for example for a
 * job that was never assigned to a worker.
 *
 * The bill covers only the attempts in the database. After a restore, the database may lack an
 * attempt that the workflow knows: that attempt is not billed.
 *
 * The returned function is idempotent. It throws if the attempts have changed since the bill was
 * prepared. The caller's retry then prepares another bill.
 */
export async function draftFailedBill(
  ctx: Context,
  jobId: string,
): Promise<FailedBill | undefined> {
  const billable = await findFailedBillable(ctx.pool, jobId);
  if (!billable || billable.attempts.length === 0) return undefined;
  // The job's hours are on a billing line already, for example because an operator ended the job
  // (services/jobs/end-job-by-operator.ts).
  if (billable.has_unbilled_line) return undefined;
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, null);
  const { attempt, ends_digest: endsDigest } = billable;
  if (!attempts.some(({ billed }) => billed)) {
    const hours = unbilledHours(attempts);
    return async (db) => {
      if (await insertUnbilledLine(db, jobId, attempt, hours, endsDigest)) return undefined;
      throw new Error(`the attempts of ${jobId} have changed`);
    };
  }
  const { record, used } = draftRecord(billable, attempts, rowsRead, null);
  return async (db) =>
    (await insertBillingRecord(db, jobId, attempt, record, used)) ??
    (await requireRecord({ pool: db }, jobId));
}

/**
 * Writes the bill of a failed job to the database. The caller must then update the file of the
 * billing record in the object store. Idempotent.
 *
 * @returns the record, if there is one.
 */
export async function billFailedJob(ctx: Context, jobId: string): Promise<BillingRow | undefined> {
  const write = await draftFailedBill(ctx, jobId);
  return await write?.(ctx.pool);
}

/** Maximum wait for the removal of a billing record's file (see `syncFailedRecordFile`). */
const REMOVAL_MS = 3_000;

/**
 * Writes the file of a failed job's billing record. If the job has no record, removes the file
 * instead: the database may have lost a record whose file was already written. The removal
 * must not delay the activity, so this function waits for it at most REMOVAL_MS. A failed removal
 * is ignored, because the file sweeper removes the file later.
 */
export async function syncFailedRecordFile(
  ctx: Context,
  job: Pick<BillingRow, "job_id" | "user_id">,
  record: BillingRow | undefined,
): Promise<void> {
  const sync = syncRecordFile(ctx, job);
  if (record) return await sync;
  const removal = sync.catch((error: unknown) => {
    ctx.logger.debug({ job_id: job.job_id, err: String(error) }, "bill's file not removed yet");
  });
  await Promise.race([removal, sleep(REMOVAL_MS, undefined, { ref: false })]);
}

export async function requireBillable(ctx: Context, input: AttemptInput): Promise<BillableRow> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable) throw new Error(`attempt ${input.attempt} of ${input.jobId} can't be billed`);
  return billable;
}

const findRowsRead = async (
  ctx: Context,
  { user_id: userId, job_type: type, payload }: BillableRow,
): Promise<number | null> => (readsRows(type) ? await findRows(ctx, userId, payload) : null);

function meter(
  ctx: Context,
  billable: BillableRow,
  rowsRead: number | null,
  output: MeasuredOutput | null,
): MeteredAttempt[] {
  const { outcomes } = ctx.config.billing;
  const { job_type: type, payload, params } = billable;
  return billable.attempts.map(({ metrics: _, result: __, gpu_name: ___, ...facts }) => {
    const isCompleted = facts.outcome === "completed";
    const usage = facts.usage && { ...facts.usage, deployment_lifetime_days: 0 };
    return meterAttempt(
      { ...facts, usage },
      (isCompleted || outcomes.has(facts.outcome)) && !billable.is_placement,
      boundsOf({ type, payload, rows: rowsRead, seconds: facts.seconds }),
      isCompleted ? countOf({ type, params, rowsRead, rowsMade: rowsOf(output) }) : NOTHING_COUNTED,
    );
  });
}

/** The billing record to insert, and the usage for its billing line. */
function draftRecord(
  billable: BillableRow,
  attempts: MeteredAttempt[],
  rowsRead: number | null,
  output: MeasuredOutput | null,
): { record: NewRecord; used: LineUsage } {
  const { user_id: userId, job_type: jobType, rate_card: rateCard, accrues } = billable;
  const metrics = metricsOf(attempts, output ? sizeOf(output) : 0);
  const gpuTokens = attempts.at(-1)?.gpu_tokens ?? [];
  const portions = portionsOf({ metrics, gpu_tokens: gpuTokens, attempts });
  const bill = priceJob(jobType, portions, rateCard);
  const details = describeWork(billable, metrics, rowsRead, rowsOf(output));
  const priced = { metrics, bill, rateCard, gpuTokens, attempts };
  const { ends_digest: endsDigest } = billable;
  const record = { ...priced, userId, jobType, details, endsDigest, accrues, measured: output };
  return { record, used: usageOfLine({ metrics, attempts }) };
}

/**
 * Describes the work of the last attempt only, so that no work is counted twice. The last attempt
 * has repeated the work of the earlier attempts, or its reported numbers include that work.
 */
function describeWork(
  { job_type: type, payload, attempts }: BillableRow,
  { input_tokens: read, output_tokens: written }: Metrics,
  rowsRead: number | null,
  rowsMade: number | null,
): WorkDetails {
  const last = attempts.at(-1);
  if (!last) return {};
  return detailsOf({
    type,
    payload,
    metrics: last.metrics ?? {},
    result: last.result ?? {},
    tokens: read + written,
    seconds: last.seconds,
    gpuName: last.gpu_name,
    rowsRead,
    rowsMade,
  });
}
