/** The signal that says: something changed in Postgres, look again. It carries nothing. */
export const WAKE_SIGNAL = "nudge";

/** Workflow and activity ids, each a pure function of the thing it stands for. */
export const jobWorkflowId = (jobId: string): string => `job:${jobId}`;
/** What follows a prefix; undefined where an id doesn't begin with it. */
const after = (prefix: string, workflowId: string): string | undefined =>
  workflowId.startsWith(prefix) ? workflowId.slice(prefix.length) : undefined;
export const jobIdOfWorkflow = (workflowId: string): string | undefined =>
  after("job:", workflowId);
export const pipelineIdOfWorkflow = (workflowId: string): string | undefined =>
  after("pipeline:", workflowId);
export const deploymentIdOfWorkflow = (workflowId: string): string | undefined =>
  after("deployment:", workflowId);
export const pipelineWorkflowId = (pipelineId: string): string => `pipeline:${pipelineId}`;
export const deploymentWorkflowId = (deploymentId: string): string => `deployment:${deploymentId}`;
export const bootstrapWorkflowId = (workerId: string): string => `bootstrap:${workerId}`;

/**
 * Completing an activity by id does not check Temporal's own retry count, so every attempt has an
 * activity id of its own: a late outcome can then never complete its successor.
 */
export const attemptActivityId = (attempt: number): string => `attempt-${attempt}`;

/** The attempt number in an activity id, or undefined when it is another kind of activity. */
export function attemptOfActivityId(activityId: string): number | undefined {
  const match = /^attempt-(\d+)$/.exec(activityId);
  return match ? Number(match[1]) : undefined;
}

/** The type of an activity's failure that is tried until something else has happened: nothing is wrong. */
export const NOT_YET = "not_yet";
