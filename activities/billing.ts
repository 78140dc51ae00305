import { priceJob } from "../core/pricing";
import type { Context } from "../infra/context";
import { findBillable, insertBillingRecord } from "../infra/database/billing";
import type { AttemptInput } from "./attempts";
import { activityLogger } from "./context";

/** Writes the job's one billing record, by the rate card pinned at submission. Idempotent. */
export async function billJob(ctx: Context, input: AttemptInput): Promise<void> {
  const billable = await findBillable(ctx.pool, input.jobId, input.attempt);
  if (!billable) throw new Error(`attempt ${input.attempt} of ${input.jobId} is not completed`);
  const bill = priceJob(billable.job_type, billable.usage, billable.rate_card, billable.gpu_tokens);
  await insertBillingRecord(ctx.pool, input.jobId, input.attempt, billable, bill);
  activityLogger(ctx, input).debug({ total_cost_usd: bill.totalCostUsd }, "billed");
}
