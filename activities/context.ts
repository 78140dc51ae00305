import { Context as ActivityContext, ApplicationFailure } from "@temporalio/activity";
import { DATABASE_BEHIND } from "../core/jobs/workflow";
import { NOT_YET } from "../core/workflow-ids";
import type { Logger } from "../platform/logger";
import type { Queryable } from "../platform/postgres/pool";
import type { Context } from "../services/context";
import { findJob, type JobRow } from "../services/jobs/jobs";

/** Input of the activities of one attempt. */
export interface AttemptInput {
  jobId: string;
  attempt: number;
  requestId: string;
}

/**
 * The failure of an activity whose data is not in the database. All data is committed before an
 * activity needs it, so the database must have lost data, for example by a restore. The failure is
 * non-retryable. If the workflow does not handle it, the workflow fails.
 */
export const missingFromDatabase = (what: string): ApplicationFailure =>
  ApplicationFailure.nonRetryable(`${what} is not in the database`, "gone");

/** The non-retryable failure after which a job's workflow starts over (see DATABASE_BEHIND). */
export const databaseBehind = (lost: string): ApplicationFailure =>
  ApplicationFailure.nonRetryable(`the database has lost ${lost}`, DATABASE_BEHIND);

export async function requireJob(db: Queryable, jobId: string): Promise<JobRow> {
  const job = await findJob(db, jobId, null);
  if (!job) throw missingFromDatabase(`job ${jobId}`);
  return job;
}

/**
 * The failure of an activity that waits for an event. It is retryable: Temporal repeats the
 * activity until the event has happened. It is not an error, so stuck-writes.ts does not record it.
 */
export const notYet = (what: string): ApplicationFailure =>
  ApplicationFailure.retryable(what, NOT_YET);

export const isNotYet = (error: unknown): boolean =>
  error instanceof ApplicationFailure && error.type === NOT_YET;

/** A logger with the fields of the job, the attempt, the request and the activity. */
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

/** Runs long work with heartbeats to Temporal. The signal aborts on cancellation and time-out. */
export async function withHeartbeats<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const activity = ActivityContext.current();
  // Local activities can't heartbeat.
  const heartbeat = setInterval(() => {
    if (!activity.info.isLocal) activity.heartbeat();
  }, HEARTBEAT_MS);
  try {
    return await work(activity.cancellationSignal);
  } finally {
    clearInterval(heartbeat);
  }
}
