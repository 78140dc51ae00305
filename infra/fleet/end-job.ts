import { hoursOf } from "../../core/billing/metering";
import { isFinal, isOwedAnotherAttempt } from "../../core/states";
import type { Context } from "../context";
import { attemptEndOf, listAttempts, lockLatestAttempt } from "../database/attempts";
import { recordAudit } from "../database/audit";
import { findBillingRecord, insertUnbilledLine, monthOfLine } from "../database/billing-records";
import { failJob, lockJob } from "../database/jobs";
import { settleAllDebts } from "../database/outbox";
import type { Queryable } from "../database/pool";
import { transaction } from "../database/transaction";
import { closeBill } from "./stop-deployment";

/** What became of a job that an operator ends. */
export type OperatorsEnd = "ended" | "unknown" | "over before" | "not finalising";

/** So begins the error of a job that was ended so. */
const BY_OPERATOR = "ended by an operator: ";
const OPERATOR = { keyId: "none", keyName: "forge-server jobs end", scope: "admin" };

/**
 * Ends a job whose work is over and whose final writes can't be done: it is `failed`, and its workflow follows.
 * Nothing more is billed. A bill that was written before stays, because none is ever changed; one of a deployment
 * that never served is closed with no days.
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
 * Puts the hours of a job that an operator ended on a line of no cost. After the job's end, and apart from it:
 * it may be just this that can't be written. Idempotent.
 */
export async function settleBill(ctx: Context, jobId: string): Promise<void> {
  await transaction(ctx.pool, async (db) => {
    const latest = await lockLatestAttempt(db, jobId);
    if (!latest || (await closeOpenBill(db, jobId))) return;
    const attempts = await listAttempts(db, jobId, null);
    const hours = attempts.reduce(
      (sum, { usage, gpu_hours_measured: measured }) =>
        sum + hoursOf(usage?.gpu_hours ?? null, measured ?? 0),
      0,
    );
    await insertUnbilledLine(db, jobId, latest.attempt, hours);
  });
}

/** @returns whether there is a bill. */
async function closeOpenBill(db: Queryable, jobId: string): Promise<boolean> {
  const record = await findBillingRecord(db, jobId, null);
  if (record?.state === "accruing") {
    const month = await monthOfLine(db, record.created_at);
    await closeBill(db, { ...record, lived: [{ month, days: 0 }], written: [] });
  }
  return record !== undefined;
}
