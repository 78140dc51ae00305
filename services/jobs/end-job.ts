import { billingRecordKey } from "../../core/artifacts/artifacts";
import { hoursOf } from "../../core/billing/metering";
import { isFinal, isOwedAnotherAttempt } from "../../core/jobs/states";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../accounts/audit";
import { releaseArtifactId } from "../artifacts/artifacts";
import { dropBill, findBillingRecord, insertUnbilledLine } from "../billing/billing-records";
import type { Context } from "../context";
import { attemptEndOf, listAttempts, lockLatestAttempt } from "./attempts";
import { failJob, findJob, lockJob } from "./jobs";
import { settleAllDebts } from "./outbox";

/** What became of a job that an operator ends. */
export type OperatorsEnd = "ended" | "unknown" | "over before" | "not finalising";

/** So begins the error of a job that was ended so. */
const BY_OPERATOR = "ended by an operator: ";
const OPERATOR = { keyId: "none", keyName: "forge-server jobs end", scope: "admin" };

/**
 * Ends a job whose work is over and whose final writes can't be done: it is `failed`, and its workflow follows.
 * Nothing of it is billed: a bill that was drawn up is borne by no month before the job completes, and is taken
 * back. The id of its artifact is free for another job; the sweeper removes the files.
 */
export async function endJob(ctx: Context, jobId: string, reason: string): Promise<OperatorsEnd> {
  const end = await transaction(ctx.pool, async (db): Promise<OperatorsEnd> => {
    const job = await lockJob(db, jobId);
    if (!job) return "unknown";
    if (job.error?.startsWith(BY_OPERATOR)) return "ended";
    if (isFinal(job.status)) return "over before";
    const latest = await lockLatestAttempt(db, jobId);
    const end = latest && attemptEndOf(latest);
    if (!end || isOwedAnotherAttempt(job, end)) return "not finalising";
    await failJob(db, jobId, latest.attempt, "job_error", `${BY_OPERATOR}${reason}`);
    await settleAllDebts(db, jobId);
    await dropBill(db, jobId);
    await releaseArtifactId(db, jobId);
    await recordAudit(db, {
      userId: job.user_id,
      action: "job_ended",
      subject: jobId,
      principal: OPERATOR,
      after: { reason },
    });
    return "ended";
  });
  if (end === "ended") ctx.logger.warn({ job_id: jobId, reason }, "ended by an operator");
  return end;
}

/**
 * Puts the hours of a job that an operator ended on a line of no cost, and removes the file of the bill that was
 * taken back. After the job's end, and apart from it: it may be just this that can't be written. Idempotent.
 */
export async function settleBill(ctx: Context, jobId: string): Promise<void> {
  const job = await findJob(ctx.pool, jobId, null);
  // The release before this one left a deployment's bill open here.
  await dropBill(ctx.pool, jobId);
  if (!job || (await findBillingRecord(ctx.pool, jobId, null))) return;
  await ctx.store.remove(billingRecordKey(job.user_id, jobId));
  await transaction(ctx.pool, async (db) => {
    const latest = await lockLatestAttempt(db, jobId);
    if (!latest) return;
    const attempts = await listAttempts(db, jobId, null);
    const hours = attempts.reduce(
      (sum, { usage, gpu_hours_measured: measured }) =>
        sum + hoursOf(usage?.gpu_hours ?? null, measured ?? 0),
      0,
    );
    await insertUnbilledLine(db, jobId, latest.attempt, hours);
  });
}
