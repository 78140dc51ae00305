import { JOB_WORKFLOW, type JobWorkflowInput } from "../core/job-workflow";
import { jobWorkflowId } from "../core/workflow-ids";
import type { Context } from "../infra/context";
import type { JobRow } from "../infra/database/jobs";
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
