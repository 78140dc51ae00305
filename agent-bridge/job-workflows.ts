import { WorkflowNotFoundError } from "@temporalio/client";
import { JOB_WORKFLOW, type JobWorkflowInput } from "../core/job-workflow";
import { isFinal } from "../core/states";
import { attemptOfActivityId, jobWorkflowId } from "../core/workflow-ids";
import type { Context } from "../infra/context";
import { findJob, type JobRow } from "../infra/database/jobs";
import { searchAttributeKeys } from "../infra/temporal";

type Startable = Pick<JobRow, "job_id" | "user_id" | "job_type" | "max_attempts" | "request_id">;

/**
 * Starts a job's workflow. `first` never repeats one that ran; `again` repairs one that was closed
 * before its job ended. One that runs is left alone either way.
 */
export async function startJobWorkflow(
  ctx: Context,
  job: Startable,
  start: "first" | "again",
): Promise<void> {
  const input: JobWorkflowInput = {
    jobId: job.job_id,
    maxAttempts: job.max_attempts,
    requestId: job.request_id,
  };
  await ctx.temporal.workflow.start(JOB_WORKFLOW, {
    workflowId: jobWorkflowId(job.job_id),
    taskQueue: ctx.config.temporal.taskQueue,
    args: [input],
    workflowIdReusePolicy: start === "first" ? "REJECT_DUPLICATE" : "ALLOW_DUPLICATE",
    workflowIdConflictPolicy: "USE_EXISTING",
    staticSummary: `${job.job_type} job of ${job.user_id}`,
    typedSearchAttributes: [
      { key: searchAttributeKeys.jobType, value: job.job_type },
      { key: searchAttributeKeys.userId, value: job.user_id },
    ],
  });
}

/**
 * Compares a job's workflow with the latest attempt that Postgres knows, and starts it again where the
 * two have parted: it was closed or is gone, or it waits for another attempt than the latest (one of
 * them came back from a crash with less than it had). A new run goes through the attempts that Postgres
 * has and meets it there.
 *
 * @returns whether the workflow that runs waits for the latest attempt right now.
 */
export async function reconcileWorkflow(
  ctx: Context,
  job: Startable,
  latestAttempt: number,
): Promise<boolean> {
  const handle = ctx.temporal.workflow.getHandle(jobWorkflowId(job.job_id));
  const { status, awaited } = await describeWorkflow(() => handle.describe());
  if (status !== "RUNNING") {
    // Read again: the workflow closes after its job ended, and the caller's row may be older than that.
    const now = await findJob(ctx.pool, job.job_id, null);
    if (now && isFinal(now.status) && status === now.status.toUpperCase()) return false;
    ctx.logger.warn({ job_id: job.job_id, status }, "its workflow is gone; starting it again");
    await startJobWorkflow(ctx, job, "again");
    return false;
  }
  if (awaited.some((attempt) => attempt !== latestAttempt)) {
    ctx.logger.warn({ job_id: job.job_id, awaited }, "its workflow waits for another attempt");
    await handle.terminate("waits for another attempt than the database's; started again");
    await startJobWorkflow(ctx, job, "again");
    return false;
  }
  return awaited.length > 0;
}

/** As Temporal has it; undefined where there is none. */
export async function findWorkflowStatus(
  { temporal }: Context,
  jobId: string,
): Promise<string | undefined> {
  const handle = temporal.workflow.getHandle(jobWorkflowId(jobId));
  return (await describeWorkflow(() => handle.describe())).status;
}

interface Described {
  status: { name: string };
  raw: { pendingActivities?: { activityId?: string | null }[] | null };
}

/** A workflow's status, undefined where there is none, and the attempts that it waits for. */
async function describeWorkflow(
  describe: () => Promise<Described>,
): Promise<{ status: string | undefined; awaited: number[] }> {
  try {
    const { status, raw } = await describe();
    const awaited = (raw.pendingActivities ?? [])
      .map(({ activityId }) => attemptOfActivityId(activityId ?? ""))
      .filter((attempt) => attempt !== undefined);
    return { status: status.name, awaited };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { status: undefined, awaited: [] };
    throw error;
  }
}
