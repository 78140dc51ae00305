import {
  ActivityNotFoundError,
  WorkflowExecutionAlreadyStartedError,
  type WorkflowStartOptions,
} from "@temporalio/client";
import { type AttemptEnd, isFinal } from "../../core/jobs/states";
import {
  JOB_WORKFLOW,
  type JobWorkflowInput,
  SUBMITTED_JOB_WORKFLOW,
} from "../../core/jobs/workflow";
import {
  attemptActivityId,
  attemptOfActivityId,
  jobIdOfWorkflow,
  jobWorkflowId,
} from "../../core/workflow-ids";
import { searchAttributeKeys } from "../../platform/temporal/client";
import type { Context } from "../context";
import type { WorkflowKind } from "../temporal/compared-rows";
import { deleteStuckWrites } from "../temporal/stuck-writes";
import { isOpen, readWorkflow } from "../temporal/workflow-state";
import { attemptEndOf, findAttempt } from "./attempts";
import { findComparedJob, JOBS } from "./compared-jobs";
import type { StartableJob } from "./outbox-entries";

export const jobWorkflows = (ctx: Context): WorkflowKind => ({
  types: [JOB_WORKFLOW, SUBMITTED_JOB_WORKFLOW],
  idOf: jobIdOfWorkflow,
  rows: JOBS,
  endsAsRow: true,
  compare: (jobId) => reconcileWorkflow(ctx, jobId),
});

/**
 * Time-out of a workflow start over the connection of this process's Temporal worker. The time-out
 * is shorter than the deadline of the whole delivery, so that `startNow` has time to try again
 * over this process's other connection to Temporal (`temporal`).
 */
const EAGER_DEADLINE_MS = 2_000;

/**
 * Starts a job's workflow. Does not change a running workflow. A new workflow reads its job's first
 * attempt before it waits, so an outcome committed before the start needs no delivery.
 *
 * @param start With "first", nothing is started if the job already had a workflow. With "again", a
 *   new workflow is started even if an earlier workflow has closed.
 * @returns whether this call started the workflow.
 */
export async function startJobWorkflow(
  ctx: Context,
  job: StartableJob,
  start: "first" | "again",
): Promise<boolean> {
  const input: JobWorkflowInput = {
    jobId: job.job_id,
    maxAttempts: job.max_attempts,
    requestId: job.request_id,
  };
  const { taskQueue, taskTimeoutMs } = ctx.config.temporal;
  const options: WorkflowStartOptions = {
    workflowId: jobWorkflowId(job.job_id),
    taskQueue,
    workflowTaskTimeout: taskTimeoutMs,
    args: [input],
    workflowIdReusePolicy: start === "first" ? "REJECT_DUPLICATE" : "ALLOW_DUPLICATE",
    workflowIdConflictPolicy: "FAIL",
    staticSummary: `${job.job_type} job of ${job.user_id}`,
    typedSearchAttributes: [
      { key: searchAttributeKeys.jobType, value: job.job_type },
      { key: searchAttributeKeys.userId, value: job.user_id },
    ],
  };
  try {
    await startNow(ctx, options);
    return true;
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
    throw error;
  }
}

/**
 * Starts a workflow, over the connection of this process's Temporal worker if there is one. Over
 * that connection, Temporal's response contains the first workflow task, so that this worker runs
 * it at once (eager start).
 */
async function startNow(
  { temporal, workerTemporal: { client } }: Context,
  options: WorkflowStartOptions,
): Promise<void> {
  if (client) {
    try {
      await client.withDeadline(Date.now() + EAGER_DEADLINE_MS, () =>
        client.workflow.start(SUBMITTED_JOB_WORKFLOW, { ...options, requestEagerStart: true }),
      );
      return;
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) throw error;
      // Perhaps only this connection is broken: try the other one.
    }
  }
  await temporal.workflow.start(SUBMITTED_JOB_WORKFLOW, options);
}

/**
 * Delivers the end of an attempt to the job's workflow.
 *
 * @returns false if the workflow does not wait for the attempt yet, no longer waits for it, or does
 *   not exist.
 */
export async function deliverOutcome(
  { temporal }: Context,
  jobId: string,
  attempt: number,
  end: AttemptEnd,
): Promise<boolean> {
  const workflowId = jobWorkflowId(jobId);
  try {
    await temporal.activity.complete({ workflowId, activityId: attemptActivityId(attempt) }, end);
    return true;
  } catch (error) {
    if (error instanceof ActivityNotFoundError) return false;
    throw error;
  }
}

/**
 * Compares a job's workflow with Postgres and repairs differences:
 * - The workflow is missing or closed, but the job has not ended, has ended with another status
 *   than the workflow, or has failed without a bill: starts the workflow again. How a job can fail
 *   without a bill: the job ends and its workflow closes, Postgres is restored to an earlier time,
 *   and the job is then cancelled. The closed workflow does not bill the cancelled job.
 * - The workflow waits for an attempt that has ended: delivers the outcome.
 * - The workflow waits for a job or an attempt that is not in Postgres, because Postgres was
 *   restored: terminates the workflow, and starts it again if the job exists.
 *
 * @returns true if nothing is left to do: job and workflow have ended with the same status, and the
 *   job's usage is recorded.
 */
export async function reconcileWorkflow(ctx: Context, jobId: string): Promise<boolean> {
  const workflow = await readWorkflow(ctx, jobWorkflowId(jobId));
  const { status } = workflow;
  const awaited = workflow.activities
    .map(({ id }) => attemptOfActivityId(id))
    .filter((attempt) => attempt !== undefined);
  // Read Postgres after Temporal, so that normal progress in between does not look like a
  // difference: Postgres has an attempt before the workflow waits for it, and the job's end before
  // the workflow closes.
  const job = await findComparedJob(ctx.pool, jobId);
  if (!job) {
    if (awaited.length > 0) {
      await workflow.terminate("its job is not in the database");
      ctx.metrics.repairs.inc({ repair: "orphan" });
    }
    await deleteStuckWrites(ctx.pool, jobWorkflowId(jobId), null);
    return false;
  }
  if (!isOpen(workflow)) {
    await deleteStuckWrites(ctx.pool, jobWorkflowId(jobId), null);
    const agrees = isFinal(job.status) && status === job.status.toUpperCase();
    if (agrees && !job.is_unbilled) return true;
    ctx.logger.warn({ job_id: jobId, status }, "its workflow is gone; starting it again");
    ctx.metrics.repairs.inc({ repair: "gone" });
    await startJobWorkflow(ctx, job, "again");
    return false;
  }
  if (awaited.some((attempt) => attempt > job.latest_attempt)) {
    ctx.logger.warn({ job_id: jobId, awaited }, "its workflow is ahead of the database");
    ctx.metrics.repairs.inc({ repair: "ahead" });
    await workflow.terminate("waits for an attempt that is not in the database; started again");
    await deleteStuckWrites(ctx.pool, jobWorkflowId(jobId), null);
    await startJobWorkflow(ctx, job, "again");
    return false;
  }
  for (const attempt of awaited) {
    const row = await findAttempt(ctx.pool, jobId, attempt);
    const end = row && attemptEndOf(row);
    if (end) await deliverOutcome(ctx, jobId, attempt, end);
  }
  return false;
}
