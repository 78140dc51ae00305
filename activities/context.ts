import { Context as ActivityContext } from "@temporalio/activity";
import type { Context } from "../infra/context";
import type { Logger } from "../infra/logger";

/** One attempt of a job, as a workflow names it to its activities. */
export interface AttemptInput {
  jobId: string;
  attempt: number;
  requestId: string;
}

/** A logger that says which job, which attempt and whose request a line belongs to. */
export function activityLogger(ctx: Context, job: AttemptInput): Logger {
  const { activityId, activityType, workflowExecution } = ActivityContext.current().info;
  return ctx.logger.child({
    job_id: job.jobId,
    attempt: job.attempt,
    request_id: job.requestId,
    activity: activityType,
    activity_id: activityId,
    workflow_id: workflowExecution?.workflowId,
  });
}
