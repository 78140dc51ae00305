import { isDeepStrictEqual } from "node:util";
import { billingRecordKey } from "../../core/artifacts/artifacts";
import { detailsOf, type WorkDetails } from "../../core/billing/details";
import { unbilledHours, usageOfLine } from "../../core/billing/line";
import {
  countOf,
  type MeteredAttempt,
  meterAttempt,
  NOTHING_COUNTED,
} from "../../core/billing/metering";
import { boundsOf, readsRows } from "../../core/billing/plausible";
import { priceJob } from "../../core/billing/pricing";
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
  insertBillingRecord,
  insertUnbilledLine,
} from "../../services/billing/billing-records";
import { findRows } from "../../services/billing/estimate-job";
import type { Context } from "../../services/context";
import type { AttemptInput } from "../context";

/** A job's output, as measured by the control plane. */
export interface JobOutput {
  /** Size of its artifact in our store. */
  storedBytes: number;
  /** Rows of its table; null if it has no readable table. */
  rows: number | null;
}

const NO_OUTPUT: JobOutput = { storedBytes: 0, rows: null };

/**
 * Writes the job's billing record with the rate card pinned at submission. Idempotent. Ignores a
 * deployment's lifetime: its stop writes that (services/deployments/stop-deployment.ts).
 */
export async function billJob(
  ctx: Context,
  input: AttemptInput,
  billable: BillableRow,
  output: JobOutput = NO_OUTPUT,
): Promise<BillingRow> {
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, output);
  return await writeRecord(ctx, input, billable, attempts, rowsRead, output);
}

/**
 * Bills a failed job if the operator bills its outcomes. Otherwise only records its usage. Does
 * nothing for a job that no worker was assigned. Idempotent.
 */
export async function billFailedJob(ctx: Context, input: AttemptInput): Promise<void> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable || billable.attempts.length === 0) return;
  // Already recorded when an operator ended the job (services/jobs/end-job.ts).
  if (billable.is_noted) return;
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, NO_OUTPUT);
  if (!attempts.some(({ billed }) => billed)) {
    return await insertUnbilledLine(ctx.pool, input.jobId, input.attempt, unbilledHours(attempts));
  }
  const record = await writeRecord(ctx, input, billable, attempts, rowsRead, NO_OUTPUT);
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
  output: JobOutput,
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
      isCompleted ? countOf({ type, params, rowsRead, rowsMade: output.rows }) : NOTHING_COUNTED,
    );
  });
}

async function writeRecord(
  ctx: Context,
  input: AttemptInput,
  billable: BillableRow,
  attempts: MeteredAttempt[],
  rowsRead: number | null,
  output: JobOutput,
): Promise<BillingRow> {
  const { user_id: userId, job_type: jobType, rate_card: rateCard, accrues } = billable;
  const metrics = metricsOf(attempts, output.storedBytes);
  const gpuTokens = attempts.at(-1)?.gpu_tokens ?? [];
  const portions = portionsOf({ metrics, gpu_tokens: gpuTokens, attempts });
  const bill = priceJob(jobType, portions, rateCard);
  const details = describeWork(billable, metrics, rowsRead, output.rows);
  const priced = { metrics, bill, rateCard, gpuTokens, attempts };
  const record = { ...priced, userId, jobType, details, accrues };
  const used = usageOfLine({ metrics, attempts });
  const written = await insertBillingRecord(ctx.pool, input.jobId, input.attempt, record, used);
  // Undefined: the record existed already.
  return written ?? (await requireRecord(ctx, input.jobId));
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
