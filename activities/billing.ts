import { priceJob } from "../core/pricing";
import type { Context } from "../infra/context";
import { findBillable, insertBillingRecord } from "../infra/database/billing";
import { type AttemptInput, activityLogger } from "./context";

/**
 * Writes the job's one billing record, by the rate card pinned at submission. Idempotent. What was
 * cancelled before any worker had it has no usage, and no record.
 */
export async function billJob(ctx: Context, input: AttemptInput): Promise<void> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable) throw new Error(`attempt ${input.attempt} of ${input.jobId} can't be billed`);
  if (billable.usage === null) return;
  const bill = priceJob(billable.job_type, billable.usage, billable.rate_card, billable.gpu_tokens);
  await insertBillingRecord(ctx.pool, input.jobId, input.attempt, billable, bill);
  activityLogger(ctx, input).debug({ total_cost_usd: bill.totalCostUsd }, "billed");
}
