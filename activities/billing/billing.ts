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

/** What a job left, as the control plane measured it. */
export interface Made {
  /** What its artifact takes in our store. */
  storedBytes: number;
  /** Of its table; null: it has none that could be read. */
  rows: number | null;
}

const NOTHING: Made = { storedBytes: 0, rows: null };

/**
 * Writes the job's one billing record, by the rate card pinned at submission. Idempotent. How long a
 * deployment lives is not for its worker to say: its stop does (services/deployments/stop-deployment.ts).
 */
export async function billJob(
  ctx: Context,
  input: AttemptInput,
  billable: BillableRow,
  made: Made = NOTHING,
): Promise<BillingRow> {
  const rowsRead = await findRowsRead(ctx, billable);
  return await writeRecord(
    ctx,
    input,
    billable,
    meter(ctx, billable, rowsRead, made),
    rowsRead,
    made,
  );
}

/**
 * The same of a job that failed, where the operator bills what came to nothing; else what it used is
 * noted. What no worker had has used nothing.
 */
export async function billFailedJob(ctx: Context, input: AttemptInput): Promise<void> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable || billable.attempts.length === 0) return;
  // Said by whoever ended the job (services/jobs/end-job.ts): then it is not tried again.
  if (billable.is_noted) return;
  const rowsRead = await findRowsRead(ctx, billable);
  const attempts = meter(ctx, billable, rowsRead, NOTHING);
  if (!attempts.some(({ billed }) => billed)) {
    return await insertUnbilledLine(ctx.pool, input.jobId, input.attempt, unbilledHours(attempts));
  }
  await fileRecord(ctx, await writeRecord(ctx, input, billable, attempts, rowsRead, NOTHING));
}

/**
 * The record as a file beside the artifacts: rendered from the row, so that writing it again changes nothing. A
 * process that stood still between reading and writing may put an old state over a newer one: so the row is
 * read again after the file was written, until the two agree. A final one has no newer state, but that an operator
 * takes it back before its job completes: finishJob removes the file then.
 */
export async function fileRecord(ctx: Context, record: BillingRow): Promise<void> {
  const key = billingRecordKey(record.user_id, record.job_id);
  for (let now = record; ; ) {
    const filed = presentBillingRecord(now);
    await putJson(ctx.store, key, filed);
    if (now.state === "final") return;
    now = await requireRecord(ctx, record.job_id);
    if (isDeepStrictEqual(presentBillingRecord(now), filed)) return;
  }
}

export async function requireRecord(ctx: Context, jobId: string): Promise<BillingRow> {
  const record = await findBillingRecord(ctx.pool, jobId, null);
  if (!record) throw new Error(`${jobId} has no bill`);
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
  made: Made,
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
      isCompleted ? countOf({ type, params, rowsRead, rowsMade: made.rows }) : NOTHING_COUNTED,
    );
  });
}

async function writeRecord(
  ctx: Context,
  input: AttemptInput,
  billable: BillableRow,
  attempts: MeteredAttempt[],
  rowsRead: number | null,
  made: Made,
): Promise<BillingRow> {
  const { user_id: userId, job_type: jobType, rate_card: rateCard, accrues } = billable;
  const metrics = metricsOf(attempts, made.storedBytes);
  const gpuTokens = attempts.at(-1)?.gpu_tokens ?? [];
  const bill = priceJob(
    jobType,
    portionsOf({ metrics, gpu_tokens: gpuTokens, attempts }),
    rateCard,
  );
  const details = describeWork(billable, metrics, rowsRead, made.rows);
  const record = {
    userId,
    jobType,
    metrics,
    bill,
    rateCard,
    gpuTokens,
    attempts,
    details,
    accrues,
  };
  const used = usageOfLine({ metrics, attempts });
  const written = await insertBillingRecord(ctx.pool, input.jobId, input.attempt, record, used);
  // Else it was written before.
  return written ?? (await requireRecord(ctx, input.jobId));
}

/** By the attempt that ended the job: what earlier ones did was done again, or is in its numbers. */
function describeWork(
  { job_type: type, payload, attempts }: BillableRow,
  { input_tokens: read, output_tokens: written }: Metrics,
  rowsRead: number | null,
  rowsMade: number | null,
): WorkDetails {
  const last = attempts.at(-1);
  if (!last) return {};
  const { seconds, gpu_name: gpuName } = last;
  const told = { metrics: last.metrics ?? {}, result: last.result ?? {} };
  return detailsOf({
    type,
    payload,
    ...told,
    tokens: read + written,
    seconds,
    gpuName,
    rowsRead,
    rowsMade,
  });
}
