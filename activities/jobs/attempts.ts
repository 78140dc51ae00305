import { CompleteAsyncError } from "@temporalio/activity";
import { ARTIFACT_FORMS } from "../../core/artifacts/artifacts";
import type { ErrorCode } from "../../core/jobs/states";
import { type AttemptReport, type JobEnd, jobEndOf } from "../../core/jobs/workflow";
import { newId } from "../../platform/ids";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../../services/context";
import { attemptEndOf, findAttemptState, queueAttempt } from "../../services/jobs/attempts";
import { cancelJob } from "../../services/jobs/cancel-job";
import { failJob } from "../../services/jobs/jobs";
import { removeEntriesOfJob } from "../../services/jobs/outbox-entries";
import { billFailedJob, syncRecordFile } from "../billing/billing";
import { type AttemptInput, activityLogger, gone, requireJob } from "../context";
import { finishCompleted } from "./finish";

export function createAttemptActivities(ctx: Context) {
  /** How the attempt, or its job, has ended; null while neither has. */
  async function readReport(input: AttemptInput): Promise<AttemptReport | null> {
    const row = await findAttemptState(ctx.pool, input.jobId, input.attempt);
    if (!row) throw gone(`job ${input.jobId}`);
    // The attempt's own end comes first: the usage of a cancelled attempt may have to be billed.
    const ended = attemptEndOf(row);
    if (ended) return ended;
    const jobEnd = jobEndOf(row.job_status, row.job_error_code);
    if (jobEnd) {
      // Cancelled between two attempts: the usage of the earlier attempts is not billed yet.
      if (jobEnd.status === "failed") await billFailedJob(ctx, input.jobId);
      return jobEnd;
    }
    if (!row.attempt_exists) throw gone(`attempt ${input.attempt} of ${input.jobId}`);
    return null;
  }

  return {
    /**
     * First activity of a job that was committed before its workflow started. Also does the final
     * writes if the attempt has completed by now. If these fail, the workflow retries them.
     */
    async lookAtAttempt(input: AttemptInput): Promise<AttemptReport | null> {
      const end = await finishCompleted(ctx, input).catch((error: unknown) => {
        const fields = { err: String(error) };
        activityLogger(ctx, input).debug(fields, "job not finished yet; the workflow retries");
        return undefined;
      });
      return end ?? (await readReport(input));
    },

    /** Returns how the attempt or its job ended; else the relay completes the activity later. */
    async awaitAttempt(input: AttemptInput): Promise<AttemptReport> {
      const report = await readReport(input);
      if (report) return report;
      activityLogger(ctx, input).debug("waiting for the attempt to end");
      throw new CompleteAsyncError();
    },

    /** Queues the given attempt of a job. Idempotent. */
    async queueAttempt(input: AttemptInput): Promise<void> {
      const job = await requireJob(ctx.pool, input.jobId);
      const form = ARTIFACT_FORMS[job.job_type];
      const queued = await queueAttempt(ctx.pool, input.jobId, input.attempt, {
        // All attempts to place a deployment again use the same deployment id.
        [form.idField]: job.deployment_id ?? newId(form.idPrefix),
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
     * Writes the final status `failed` with the error of the last attempt. Before that, records the
     * job's usage, and bills it if the operator configured so. Idempotent.
     */
    async failJob(input: AttemptInput & { code: ErrorCode }): Promise<JobEnd> {
      await billFailedJob(ctx, input.jobId);
      const { failed, end, job } = await transaction(ctx.pool, async (db) => {
        const failed = await failJob(db, input.jobId, input.attempt, input.code);
        const job = await requireJob(db, input.jobId);
        const end = jobEndOf(job.status, job.error_code);
        if (end) await removeEntriesOfJob(db, input.jobId);
        return { failed, end, job };
      });
      if (end?.status === "completed") await syncRecordFile(ctx, job);
      if (failed) activityLogger(ctx, input).info({ code: input.code }, "job failed");
      if (!end) throw gone(`the end of attempt ${input.attempt} of ${input.jobId}`);
      return end;
    },
  };
}
