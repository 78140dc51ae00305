import { billableGpuHours } from "../../core/billing/metering";
import { willRetry } from "../../core/jobs/retry";
import { isFinal } from "../../core/jobs/states";
import { jobWorkflowId } from "../../core/workflow-ids";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../accounts/audit";
import { releaseArtifactId } from "../artifacts/artifacts";
import {
  deleteUnbilledRecord,
  findBillingRecord,
  insertUnbilledLine,
} from "../billing/billing-records";
import { syncRecordFile } from "../billing/record-file";
import type { Context } from "../context";
import { hasStuckWrite } from "../temporal/stuck-writes";
import { attemptEndOf, listAttempts, lockLatestAttempt } from "./attempts";
import { failJob } from "./fail-job";
import { findJob, lockJob } from "./jobs";
import { removeEntriesOfJob } from "./outbox-entries";

export type EndJobOutcome =
  | "ended"
  | "unknown"
  | "already ended"
  | "already billed"
  | "not finalising";

/** Prefix of the error of a job that an operator ended. */
const BY_OPERATOR = "ended by an operator: ";
const OPERATOR = { keyId: "none", keyName: "forge-server jobs end", scope: "admin" };

/**
 * Ends a job whose work is over but whose final writes fail. The job becomes `failed`; its workflow
 * then ends. The job is not billed. A bill that was already written is deleted. This changes no
 * month's total, because a total includes a bill only after the job has completed. The id of the
 * job's artifact becomes free for another job. The sweeper removes the files.
 *
 * A job that has already failed, for example because it was cancelled, keeps its error. The only
 * final write that such a job can lack is its bill.
 */
export async function endJob(ctx: Context, jobId: string, reason: string): Promise<EndJobOutcome> {
  const end = await transaction(ctx.pool, async (db): Promise<EndJobOutcome> => {
    const job = await lockJob(db, jobId);
    if (!job) return "unknown";
    if (job.error?.startsWith(BY_OPERATOR)) return "ended";
    if (isFinal(job.status)) {
      if (job.status === "completed" || !(await hasStuckWrite(db, jobWorkflowId(jobId))))
        return "already ended";
      if (await findBillingRecord(db, jobId, null)) return "already billed";
      // Write the GPU hours on a billing line without cost. This must happen in this transaction,
      // because the line keeps the job's workflow from billing the job.
      await insertHours(db, jobId);
    } else {
      const latest = await lockLatestAttempt(db, jobId);
      const end = latest && attemptEndOf(latest);
      if (!end || willRetry(job, end)) return "not finalising";
      await failJob(db, jobId, latest.attempt, "job_error", `${BY_OPERATOR}${reason}`);
    }
    await removeEntriesOfJob(db, jobId);
    await deleteUnbilledRecord(db, jobId);
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
 * Records the hours of a job that an operator ended, on a billing line without cost. Also updates
 * the bill's file: if the bill was deleted, its file is removed, otherwise the file is written.
 * Runs after `endJob`, in a transaction of its own: these writes may be the ones that failed
 * before, and must not roll back the job's end. Idempotent.
 */
export async function recordUnbilledHours(ctx: Context, jobId: string): Promise<void> {
  const job = await findJob(ctx.pool, jobId, null);
  // `endJob` has already deleted the bill. Delete it here too: the previous release's `endJob` did
  // not delete a deployment's bill that was still accruing.
  await deleteUnbilledRecord(ctx.pool, jobId);
  if (!job) return;
  await syncRecordFile(ctx, job);
  if (await findBillingRecord(ctx.pool, jobId, null)) return;
  await transaction(ctx.pool, (db) => insertHours(db, jobId));
}

/** Writes a job's GPU hours on a billing line without cost. Idempotent. */
async function insertHours(db: Queryable, jobId: string): Promise<void> {
  const latest = await lockLatestAttempt(db, jobId);
  if (!latest) return;
  const attempts = await listAttempts(db, jobId, null);
  const hours = attempts.reduce(
    (sum, { usage, gpu_hours_measured: measured }) =>
      sum + billableGpuHours(usage?.gpu_hours ?? null, measured ?? 0),
    0,
  );
  await insertUnbilledLine(db, jobId, latest.attempt, hours);
}
