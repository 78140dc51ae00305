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
import type { WorkflowKind } from "../temporal/workflow-kind";
import { isOpen, readWorkflow } from "../temporal/workflow-state";
import { attemptEndOf, findAttempt } from "./attempts";
import type { JobRow } from "./jobs";
import { findComparedJob, JOBS, listStandingJobs } from "./standing-jobs";
import { forgetStuckWrites } from "./stuck-writes";

/** Jobs as the reconciler compares them. */
export const jobWorkflows = (ctx: Context): WorkflowKind => ({
  types: [JOB_WORKFLOW, SUBMITTED_JOB_WORKFLOW],
  idOf: jobIdOfWorkflow,
  listStanding: (forS, afterId, limit) => listStandingJobs(ctx.pool, forS, afterId, limit),
  rows: JOBS,
  compare: (jobId) => reconcileWorkflow(ctx, jobId),
});

type Startable = Pick<JobRow, "job_id" | "user_id" | "job_type" | "max_attempts" | "request_id">;

/** Less than a whole call of Temporal may take: so much is left for the other connection. */
const EAGER_DEADLINE_MS = 2_000;

/**
 * Starts a job's workflow. `first` never repeats one that ran; `again` repairs one that was closed
 * before its job ended. One that runs is left alone either way. A started one looks at its job's first
 * attempt before it waits, so it needs no telling of what was committed before the start.
 *
 * @returns whether this call has started it.
 */
export async function startJobWorkflow(
  ctx: Context,
  job: Startable,
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

/** By this process's Temporal worker, where there is one: then that begins it at once. */
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
      // The trouble may be that connection's own.
    }
  }
  await temporal.workflow.start(SUBMITTED_JOB_WORKFLOW, options);
}

/**
 * Tells a job's workflow how an attempt ended.
 *
 * @returns false where the workflow does not wait for that attempt: not yet, not any more, or there is none.
 */
export async function tellOutcome(
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
 * Compares a job's workflow with what Postgres knows, and mends what has parted: a workflow that is gone
 * while its job goes on, one that waits for an attempt that has ended, and, after one of the two came back
 * with less than it had, one that waits for an attempt or a job that is not there.
 *
 * @returns whether nothing is left to do: the job has ended, and its workflow as the job did.
 */
export async function reconcileWorkflow(ctx: Context, jobId: string): Promise<boolean> {
  const workflow = await readWorkflow(ctx, jobWorkflowId(jobId));
  const { status } = workflow;
  const awaited = workflow.activities
    .map(({ id }) => attemptOfActivityId(id))
    .filter((attempt) => attempt !== undefined);
  // Read after Temporal: an attempt is written before it is waited for, and a workflow closes after its job ended.
  const job = await findComparedJob(ctx.pool, jobId);
  if (!job) {
    if (awaited.length > 0) {
      await workflow.terminate("its job is not in the database");
      ctx.metrics.repairs.inc({ repair: "orphan" });
    }
    await forgetStuckWrites(ctx.pool, jobWorkflowId(jobId), null);
    return false;
  }
  if (!isOpen(workflow)) {
    await forgetStuckWrites(ctx.pool, jobWorkflowId(jobId), null);
    if (isFinal(job.status) && status === job.status.toUpperCase()) return true;
    ctx.logger.warn({ job_id: jobId, status }, "its workflow is gone; starting it again");
    ctx.metrics.repairs.inc({ repair: "gone" });
    await startJobWorkflow(ctx, job, "again");
    return false;
  }
  if (awaited.some((attempt) => attempt > job.latest_attempt)) {
    ctx.logger.warn({ job_id: jobId, awaited }, "its workflow is ahead of the database");
    ctx.metrics.repairs.inc({ repair: "ahead" });
    await workflow.terminate("waits for an attempt that is not in the database; started again");
    await forgetStuckWrites(ctx.pool, jobWorkflowId(jobId), null);
    await startJobWorkflow(ctx, job, "again");
    return false;
  }
  for (const attempt of awaited) {
    const row = await findAttempt(ctx.pool, jobId, attempt);
    const end = row && attemptEndOf(row);
    if (end) await tellOutcome(ctx, jobId, attempt, end);
  }
  return false;
}
