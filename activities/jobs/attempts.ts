import { CompleteAsyncError } from "@temporalio/activity";
import { ARTIFACT_FORMS } from "../../core/artifacts/artifacts";
import { isRetryable, willRetry } from "../../core/jobs/retry";
import { type ErrorCode, errorCodeOf, isFinal } from "../../core/jobs/states";
import { type AttemptReport, type JobEnd, jobEndOf } from "../../core/jobs/workflow";
import { newId } from "../../platform/ids";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { syncRecordFile } from "../../services/billing/record-file";
import type { Context } from "../../services/context";
import {
  attemptEndOf,
  findAttempt,
  findAttemptState,
  lockLatestAttempt,
  queueAttempt,
} from "../../services/jobs/attempts";
import { avoidFailedWorkers } from "../../services/jobs/avoided-workers";
import { cancelJob } from "../../services/jobs/cancel-job";
import { isUnbilled } from "../../services/jobs/compared-jobs";
import { failJob } from "../../services/jobs/fail-job";
import { lockJob } from "../../services/jobs/jobs";
import { removeEntriesOfJob } from "../../services/jobs/outbox-entries";
import { billFailedJob, draftFailedBill, syncFailedRecordFile } from "../billing/billing";
import {
  type AttemptInput,
  activityLogger,
  databaseBehind,
  missingFromDatabase,
  requireJob,
} from "../context";
import { finishCompleted } from "./finish-job";

export function createAttemptActivities(ctx: Context) {
  /**
   * Returns how the attempt has ended, or else how its job has ended; null if neither has ended.
   */
  async function readReport(input: AttemptInput): Promise<AttemptReport | null> {
    const row = await findAttemptState(ctx.pool, input.jobId, input.attempt);
    if (!row) throw missingFromDatabase(`job ${input.jobId}`);
    // If both have ended, return the attempt's end. The workflow then makes the final writes
    // (`finishJob` or `failJob`). If it received the job's end, the workflow would skip them.
    const ended = attemptEndOf(row);
    if (ended) return ended;
    const jobEnd = jobEndOf(row.job_status, row.job_error_code);
    if (jobEnd) {
      // The job ended before this attempt was queued. If it failed, for example because it was
      // cancelled between two attempts, bill the earlier attempts here: the workflow ends without
      // calling `failJob`.
      if (jobEnd.status === "failed") {
        const record = await billFailedJob(ctx, input.jobId);
        await syncFailedRecordFile(ctx, await requireJob(ctx.pool, input.jobId), record);
      }
      return jobEnd;
    }
    if (!row.attempt_exists) throw databaseBehind(`attempt ${input.attempt} of ${input.jobId}`);
    return null;
  }

  return {
    /**
     * First activity of `submittedJobWorkflow`, which starts after its job was inserted. Returns
     * the same as `readReport`. The attempt of a short job may already have completed. This
     * activity then first makes the final writes, which saves a workflow task. If the final writes
     * fail, the workflow repeats them.
     */
    async lookAtAttempt(input: AttemptInput): Promise<AttemptReport | null> {
      const end = await finishCompleted(ctx, input).catch((error: unknown) => {
        const fields = { err: String(error) };
        activityLogger(ctx, input).debug(fields, "job not finished yet; the workflow retries");
        return undefined;
      });
      return end ?? (await readReport(input));
    },

    /**
     * Returns how the attempt or its job ended. If neither has ended, the activity stays open until
     * the courier completes it.
     */
    async awaitAttempt(input: AttemptInput): Promise<AttemptReport> {
      const report = await readReport(input);
      if (report) return report;
      activityLogger(ctx, input).debug("waiting for the attempt to end");
      throw new CompleteAsyncError();
    },

    /**
     * Queues the given attempt of a job. The workflow calls this after the previous attempt has
     * ended with a retryable outcome. If the database has a non-retryable outcome instead, the
     * database has lost the outcome that the workflow saw. This activity then fails with
     * DATABASE_BEHIND, and the workflow starts over. Idempotent.
     */
    async queueAttempt(input: AttemptInput): Promise<void> {
      const job = await requireJob(ctx.pool, input.jobId);
      const before = await findAttempt(ctx.pool, input.jobId, input.attempt - 1);
      const end = before && attemptEndOf(before);
      if (end && !isRetryable(end) && !isFinal(job.status)) {
        throw databaseBehind(`the retryable end of attempt ${input.attempt - 1} of ${input.jobId}`);
      }
      const form = ARTIFACT_FORMS[job.job_type];
      const outputIds = {
        // A job that adds a placement to an existing deployment uses the deployment's id.
        [form.idField]: job.deployment_id ?? newId(form.idPrefix),
      };
      const queued = await transaction(ctx.pool, async (db) => {
        const isNew = await queueAttempt(db, input.jobId, input.attempt, outputIds);
        if (isNew) await avoidFailedWorkers(db, job);
        return isNew;
      });
      if (!queued) return;
      activityLogger(ctx, input).info("attempt queued");
      ctx.signals.queueChanged();
    },

    /** Cancels the job as its user would. No effect on an ended job. Idempotent. */
    async cancelJob({ jobId }: { jobId: string }): Promise<void> {
      const answer = await cancelJob(ctx, jobId, null, "temporal");
      ctx.logger.info({ job_id: jobId, answer }, "cancelled through Temporal");
    },

    /**
     * Writes the final status `failed` with the error of the last attempt. In the same transaction,
     * writes the job's bill or, if the job is not billed, its GPU hours. Idempotent.
     *
     * Reads the attempt's end from the database to decide whether the job fails, and with which
     * error. If the job still continues according to the database, the database has lost the end
     * that the workflow saw. This activity then fails with DATABASE_BEHIND, and the workflow starts
     * over.
     */
    async failJob(input: AttemptInput & { code: ErrorCode }): Promise<JobEnd> {
      const { jobId, attempt } = input;
      const bill = await draftFailedBill(ctx, jobId);
      const done = await transaction(ctx.pool, async (db) => {
        const code = await finalCodeOf(db, jobId, attempt);
        const failed = code !== undefined && (await failJob(db, jobId, attempt, code));
        const job = await requireJob(db, jobId);
        const end = jobEndOf(job.status, job.error_code);
        if (!end) throw databaseBehind(`the end of attempt ${attempt} of ${jobId}`);
        // `draftFailedBill` found nothing to bill, but an attempt has ended since then. Throw, so
        // that the retry drafts a bill that includes this attempt.
        if (!bill && (await isUnbilled(db, jobId))) {
          throw new Error(`the attempts of ${jobId} have changed`);
        }
        await removeEntriesOfJob(db, jobId);
        // Write the bill last, because this locks the month's totals, which all bills of the tenant
        // share.
        const record = end.status === "failed" ? await bill?.(db) : undefined;
        return { failed, job, end, record };
      });
      if (done.end.status === "completed") await syncRecordFile(ctx, done.job);
      else await syncFailedRecordFile(ctx, done.job, done.record);
      if (done.failed) activityLogger(ctx, input).info({ code: done.job.error_code }, "job failed");
      return done.end;
    },
  };
}

/**
 * The error code with which the attempt ends its job; undefined if the attempt does not end the
 * job. Locks the job and its latest attempt.
 */
async function finalCodeOf(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<ErrorCode | undefined> {
  const job = await lockJob(db, jobId);
  const latest = job && (await lockLatestAttempt(db, jobId));
  const end = latest && attemptEndOf(latest);
  if (!end || latest.attempt !== attempt || end.outcome === "completed") return undefined;
  const limits = { attempts: attempt, max_attempts: job.max_attempts };
  return willRetry(limits, end) ? undefined : errorCodeOf(end);
}
