import { isDeepStrictEqual } from "node:util";
import { billingRecordKey } from "../../core/artifacts/artifacts";
import type { MeasuredOutput } from "../../core/artifacts/manifest";
import { priceJob } from "../../core/billing/bill";
import { detailsOf, type WorkDetails } from "../../core/billing/details";
import { unbilledHours, usageOfLine } from "../../core/billing/line";
import {
  countOf,
  type MeteredAttempt,
  meterAttempt,
  NOTHING_COUNTED,
} from "../../core/billing/metering";
import { boundsOf, readsRows } from "../../core/billing/plausible";
import {
  type Metrics,
  metricsOf,
  portionsOf,
  presentBillingRecord,
} from "../../core/billing/record";
import { putJson } from "../../platform/store/object-store";
import {
  type BillableRow,
  type BillingRow,
  findBillable,
  findBillingRecord,
  findFailedBillable,
  insertBillingRecord,
  insertUnbilledLine,
} from "../../services/billing/billing-records";
import { findRows } from "../../services/billing/estimate-job";
import type { Context } from "../../services/context";
import type { AttemptInput } from "../context";

/** Size of an artifact in our store. */
export const sizeOf = ({ files }: MeasuredOutput): number =>
  files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);

/** Rows of an artifact's table; null if it has no readable table. */
const rowsOf = (output: MeasuredOutput | null): number | null =>
  output?.table?.isRead ? output.table.numRows : null;

interface WrittenBill {
  record: BillingRow;
  /** False: the record existed already, made from an earlier measurement. */
  isNew: boolean;
}

/**
 * Writes the job's billing record with the rate card pinned at submission, and stores the measurement
 * of its output for the manifest. Idempotent: only the first call writes both. Ignores a
 * deployment's lifetime: its stop writes that (services/deployments/stop-deployment.ts).
 */
export async function billJob(
  ctx: Context,
  input: AttemptInput,
  billable: BillableRow,
  output: MeasuredOutput | null = null,
): Promise<WrittenBill> {
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, output);
  return await writeRecord(ctx, input, billable, attempts, rowsRead, output);
}

/**
 * Bills a failed job if the operator bills its outcomes. Otherwise only records its usage. Does
 * nothing for a job that no worker was assigned. Bills up to the job's last attempt, because a
 * restored database may have lost the attempt that the workflow knows. Idempotent.
 */
export async function billFailedJob(ctx: Context, jobId: string): Promise<void> {
  const billable = await findFailedBillable(ctx.pool, jobId);
  if (!billable || billable.attempts.length === 0) return;
  // Already recorded when an operator ended the job (services/jobs/end-job.ts).
  if (billable.is_noted) return;
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, null);
  const { attempt } = billable;
  if (!attempts.some(({ billed }) => billed)) {
    return await insertUnbilledLine(ctx.pool, jobId, attempt, unbilledHours(attempts));
  }
  const input = { jobId, attempt };
  const { record } = await writeRecord(ctx, input, billable, attempts, rowsRead, null);
  await writeRecordFile(ctx, record);
}

/**
 * Writes the record as a file to the object store. Idempotent: the file is rendered from the row.
 * Reads the row again after each write, because a process that was suspended in between may have
 * overwritten a newer state. A final record changes only if an operator withdraws it before its job
 * completes; finishJob then removes the file.
 */
export async function writeRecordFile(ctx: Context, record: BillingRow): Promise<void> {
  const key = billingRecordKey(record.user_id, record.job_id);
  for (let now = record; ; ) {
    const content = presentBillingRecord(now);
    await putJson(ctx.store, key, content);
    if (now.state === "final") return;
    now = await requireRecord(ctx, record.job_id);
    if (isDeepStrictEqual(presentBillingRecord(now), content)) return;
  }
}

/**
 * Writes the file of an ended job's record, or removes it if there is none. Call if another process
 * has ended the job: this one may have written the file of a bill that the database lost, or that
 * an operator withdrew.
 */
export async function syncRecordFile(
  ctx: Context,
  { job_id: jobId, user_id: userId }: Pick<BillingRow, "job_id" | "user_id">,
): Promise<void> {
  const record = await findBillingRecord(ctx.pool, jobId, null);
  if (record) await writeRecordFile(ctx, record);
  else await ctx.store.remove(billingRecordKey(userId, jobId));
}

export async function requireRecord(ctx: Context, jobId: string): Promise<BillingRow> {
  const record = await findBillingRecord(ctx.pool, jobId, null);
  if (!record) throw new Error(`job ${jobId} has no billing record`);
  return record;
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

async function writeRecord(
  ctx: Context,
  input: Pick<AttemptInput, "jobId" | "attempt">,
  billable: BillableRow,
  attempts: MeteredAttempt[],
  rowsRead: number | null,
  output: MeasuredOutput | null,
): Promise<WrittenBill> {
  const { user_id: userId, job_type: jobType, rate_card: rateCard, accrues } = billable;
  const metrics = metricsOf(attempts, output ? sizeOf(output) : 0);
  const gpuTokens = attempts.at(-1)?.gpu_tokens ?? [];
  const portions = portionsOf({ metrics, gpu_tokens: gpuTokens, attempts });
  const bill = priceJob(jobType, portions, rateCard);
  const details = describeWork(billable, metrics, rowsRead, rowsOf(output));
  const priced = { metrics, bill, rateCard, gpuTokens, attempts };
  const record = { ...priced, userId, jobType, details, accrues, measured: output };
  const used = usageOfLine({ metrics, attempts });
  const written = await insertBillingRecord(ctx.pool, input.jobId, input.attempt, record, used);
  if (written) return { record: written, isNew: true };
  return { record: await requireRecord(ctx, input.jobId), isNew: false };
}

/** Work details of the last attempt. Earlier attempts were repeated, or are in its numbers. */
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
