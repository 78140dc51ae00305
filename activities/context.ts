import { Context as ActivityContext, ApplicationFailure } from "@temporalio/activity";
import { NOT_YET } from "../core/workflow-ids";
import type { Logger } from "../platform/logger";
import type { Context } from "../services/context";

/** One attempt of a job, as a workflow names it to its activities. */
export interface AttemptInput {
  jobId: string;
  attempt: number;
  requestId: string;
}

/**
 * What a workflow works for is not in the database, which came back with less than it had: no other try finds
 * it, and the workflow fails. Rows are written before their workflows start, and stay.
 */
export const gone = (what: string): ApplicationFailure =>
  ApplicationFailure.nonRetryable(`${what} is not in the database`, "gone");

/** What an activity fails with that is tried until something else has happened: nothing is wrong. */
export const notYet = (what: string): ApplicationFailure =>
  ApplicationFailure.retryable(what, NOT_YET);

export const isNotYet = (error: unknown): boolean =>
  error instanceof ApplicationFailure && error.type === NOT_YET;

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

const HEARTBEAT_MS = 10_000;

/** Long work of an activity: Temporal hears that it goes on, and it hears when nobody waits for it. */
export async function whileAlive<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const activity = ActivityContext.current();
  // A local activity has nobody to tell.
  const heartbeat = setInterval(() => {
    if (!activity.info.isLocal) activity.heartbeat();
  }, HEARTBEAT_MS);
  try {
    return await work(activity.cancellationSignal);
  } finally {
    clearInterval(heartbeat);
  }
}
