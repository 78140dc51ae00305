/**
 * Signal: something changed in Postgres, read it again. It has no payload. Its name must not
 * change, because running workflows wait for a signal with this name.
 */
export const WAKE_SIGNAL = "nudge";

export const jobWorkflowId = (jobId: string): string => `job:${jobId}`;
export const pipelineWorkflowId = (pipelineId: string): string => `pipeline:${pipelineId}`;
export const deploymentWorkflowId = (deploymentId: string): string => `deployment:${deploymentId}`;
export const bootstrapWorkflowId = (workerId: string): string => `bootstrap:${workerId}`;

/** Reads the part of a workflow id after a prefix; undefined for other ids. */
const idAfter =
  (prefix: string) =>
  (workflowId: string): string | undefined =>
    workflowId.startsWith(prefix) ? workflowId.slice(prefix.length) : undefined;
export const jobIdOfWorkflow = idAfter("job:");
export const pipelineIdOfWorkflow = idAfter("pipeline:");
export const deploymentIdOfWorkflow = idAfter("deployment:");

/**
 * Each attempt has its own activity id. To complete an activity, Forge gives Temporal only the ids
 * of the workflow and the activity. With one activity id for all attempts, a late outcome could
 * complete the activity of the next attempt.
 */
export const attemptActivityId = (attempt: number): string => `attempt-${attempt}`;

/** The attempt number in an activity id; undefined for other activities. */
export function attemptOfActivityId(activityId: string): number | undefined {
  const match = /^attempt-(\d+)$/.exec(activityId);
  return match ? Number(match[1]) : undefined;
}

/**
 * Failure type of an activity that waits for an event. Temporal retries the activity until the
 * event has happened. The failure does not indicate an error.
 */
export const NOT_YET = "not_yet";
