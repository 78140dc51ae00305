import { isDeepStrictEqual } from "node:util";
import { billingRecordKey } from "../core/artifacts";
import { unbilledHours, usageOfLine } from "../core/billing/line";
import { type MeteredAttempt, meterAttempt } from "../core/billing/metering";
import { boundsOf, readsRows } from "../core/billing/plausible";
import { priceJob } from "../core/billing/pricing";
import { metricsOf, portionsOf, presentBillingRecord } from "../core/billing/record";
import { findRows } from "../infra/billing/estimate-job";
import type { Context } from "../infra/context";
import {
  type BillableRow,
  type BillingRow,
  findBillable,
  findBillingRecord,
  insertBillingRecord,
  insertUnbilledLine,
} from "../infra/database/billing-records";
import { putJson } from "../infra/store/object-store";
import type { AttemptInput } from "./context";

/**
 * Writes the job's one billing record, by the rate card pinned at submission. Idempotent. How long a
 * deployment lives is not for its worker to say: its stop does (infra/fleet/stop-deployment.ts).
 *
 * @param storedBytes what its artifact takes in our store.
 */
export async function billJob(
  ctx: Context,
  input: AttemptInput,
  storedBytes: number,
): Promise<BillingRow> {
  const billable = await requireBillable(ctx, input);
  await insertRecord(ctx, input, billable, await meter(ctx, billable), storedBytes);
  return await requireRecord(ctx, input.jobId);
}

/**
 * The same of a job that failed, where the operator bills what came to nothing; else what it used is
 * noted. What no worker had has used nothing.
 */
export async function billFailedJob(ctx: Context, input: AttemptInput): Promise<void> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable || billable.attempts.length === 0) return;
  // Said by whoever ended the job (infra/fleet/end-job.ts): then it is not tried again.
  if (billable.is_noted) return;
  const attempts = await meter(ctx, billable);
  if (!attempts.some(({ billed }) => billed)) {
    return await insertUnbilledLine(ctx.pool, input.jobId, input.attempt, unbilledHours(attempts));
  }
  await insertRecord(ctx, input, billable, attempts, 0);
  await fileRecord(ctx, await requireRecord(ctx, input.jobId));
}

/**
 * The record as a file beside the artifacts: rendered from the row, so that writing it again changes nothing. A
 * process that stood still between reading and writing may put an old state over a newer one: so the row is
 * read again after the file was written, until the two agree.
 */
export async function fileRecord(ctx: Context, record: BillingRow): Promise<void> {
  const key = billingRecordKey(record.user_id, record.job_id);
  for (let filed = presentBillingRecord(record); ; ) {
    await putJson(ctx.store, key, filed);
    const now = presentBillingRecord(await requireRecord(ctx, record.job_id));
    if (isDeepStrictEqual(now, filed)) return;
    filed = now;
  }
}

export async function requireRecord(ctx: Context, jobId: string): Promise<BillingRow> {
  const record = await findBillingRecord(ctx.pool, jobId, null);
  if (!record) throw new Error(`${jobId} has no bill`);
  return record;
}

async function requireBillable(ctx: Context, input: AttemptInput): Promise<BillableRow> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable) throw new Error(`attempt ${input.attempt} of ${input.jobId} can't be billed`);
  return billable;
}

async function meter(ctx: Context, billable: BillableRow): Promise<MeteredAttempt[]> {
  const { outcomes } = ctx.config.billing;
  const { user_id: userId, job_type: type, payload } = billable;
  const rows = readsRows(type) ? await findRows(ctx, userId, payload) : null;
  return billable.attempts.map((facts) => {
    const counts = facts.outcome === "completed" || outcomes.has(facts.outcome);
    const usage = facts.usage && { ...facts.usage, deployment_lifetime_days: 0 };
    const bounds = boundsOf({ type, payload, rows, seconds: facts.seconds });
    return meterAttempt({ ...facts, usage }, counts && !billable.is_placement, bounds);
  });
}

async function insertRecord(
  ctx: Context,
  input: AttemptInput,
  { user_id: userId, job_type: jobType, rate_card: rateCard, accrues }: BillableRow,
  attempts: MeteredAttempt[],
  storedBytes: number,
): Promise<void> {
  const metrics = metricsOf(attempts, storedBytes);
  const gpuTokens = attempts.at(-1)?.gpu_tokens ?? [];
  const bill = priceJob(
    jobType,
    portionsOf({ metrics, gpu_tokens: gpuTokens, attempts }),
    rateCard,
  );
  const record = { userId, jobType, metrics, bill, rateCard, gpuTokens, attempts, accrues };
  const used = usageOfLine({ metrics, attempts });
  await insertBillingRecord(ctx.pool, input.jobId, input.attempt, record, used);
}
