import { CompleteAsyncError } from "@temporalio/activity";
import { ARTIFACT_FORMS } from "../../core/artifacts/artifacts";
import type { ErrorCode, JobStatus } from "../../core/jobs/states";
import type { AttemptReport, JobEnd } from "../../core/jobs/workflow";
import { newId } from "../../platform/ids";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../../services/context";
import { attemptEndOf, findAttemptState, queueAttempt } from "../../services/jobs/attempts";
import { cancelJob } from "../../services/jobs/cancel-job";
import { failJob, findJob, type JobRow } from "../../services/jobs/jobs";
import { settleAllDebts } from "../../services/jobs/outbox";
import { billFailedJob } from "../billing/billing";
import { type AttemptInput, activityLogger, gone } from "../context";
import { finishCompleted } from "./finish";

export function createAttemptActivities(ctx: Context) {
  /** How an attempt or its whole job has ended; null while neither has. */
  async function look(input: AttemptInput): Promise<AttemptReport | null> {
    const row = await findAttemptState(ctx.pool, input.jobId, input.attempt);
    // Its own end first: of a cancelled one the usage may have to be billed.
    if (!row) throw gone(`job ${input.jobId}`);
    const ended = attemptEndOf(row);
    if (ended) return ended;
    const jobEnd = endOf(row.job_status, row.job_error_code);
    if (jobEnd) {
      // It was cancelled between two attempts, and what the earlier ones used is on no bill yet.
      if (jobEnd.status === "failed") await billFailedJob(ctx, before(input));
      return jobEnd;
    }
    if (!row.is_there) throw gone(`attempt ${input.attempt} of ${input.jobId}`);
    return null;
  }

  return {
    /**
     * The first look of a job whose workflow starts after it was submitted. One that has completed by then is
     * finished with it: its workflow has nothing else to do. What can't be finished now, the workflow tries again.
     */
    async lookAtAttempt(input: AttemptInput): Promise<AttemptReport | null> {
      const end = await finishCompleted(ctx, input).catch((error: unknown) => {
        activityLogger(ctx, input).debug({ err: String(error) }, "not finished at the first look");
        return undefined;
      });
      return end ?? (await look(input));
    },

    /**
     * Waits for an attempt to end. Answers at once when it has, or when its whole job has; else parks:
     * the relay completes the activity by its id, whichever comes first.
     */
    async awaitAttempt(input: AttemptInput): Promise<AttemptReport> {
      const report = await look(input);
      if (report) return report;
      activityLogger(ctx, input).debug("waiting for the attempt to end");
      throw new CompleteAsyncError();
    },

    /** Puts attempt n of a job into the queue. Idempotent. */
    async queueAttempt(input: AttemptInput): Promise<void> {
      const job = await requireJob(ctx.pool, input.jobId);
      const form = ARTIFACT_FORMS[job.job_type];
      const queued = await queueAttempt(ctx.pool, input.jobId, input.attempt, {
        // What is placed again is the same thing, whichever attempt does it.
        [form.idField]: job.deployment_id ?? newId(form.idPrefix),
      });
      if (!queued) return;
      activityLogger(ctx, input).info("another attempt is queued");
      ctx.signals.queueChanged();
    },

    /** Cancels the job as its user would. Idempotent; one that has ended stays as it is. */
    async cancelJob({ jobId }: { jobId: string }): Promise<void> {
      const answer = await cancelJob(ctx, jobId, null, "temporal");
      ctx.logger.info({ job_id: jobId, answer }, "cancelled through Temporal");
    },

    /**
     * Writes `failed`, the job's last word, with the error of its last attempt; before it what the job
     * used, which is billed where the operator says so. Idempotent.
     */
    async failJob(input: AttemptInput & { code: ErrorCode }): Promise<JobEnd> {
      await billFailedJob(ctx, input);
      const { failed, end } = await transaction(ctx.pool, async (db) => {
        const failed = await failJob(db, input.jobId, input.attempt, input.code);
        const job = await requireJob(db, input.jobId);
        const end = endOf(job.status, job.error_code);
        if (end) await settleAllDebts(db, input.jobId);
        return { failed, end };
      });
      if (failed) activityLogger(ctx, input).info({ code: input.code }, "job failed");
      if (!end) throw gone(`the end of attempt ${input.attempt} of ${input.jobId}`);
      return end;
    },
  };
}

const before = (input: AttemptInput): AttemptInput => ({ ...input, attempt: input.attempt - 1 });

async function requireJob(db: Queryable, jobId: string): Promise<JobRow> {
  const job = await findJob(db, jobId, null);
  if (!job) throw gone(`job ${jobId}`);
  return job;
}

function endOf(status: JobStatus, code: ErrorCode | null): JobEnd | undefined {
  if (status === "completed") return { status };
  if (status === "failed") return { status, code: code ?? "job_error" };
  return undefined;
}
