/** The store key of an attempt's log. Never taken from worker input. */
export const logKey = (jobId: string, attempt: number): string =>
  `artifacts/logs/${jobId}/attempt-${attempt}.log`;

/** Checkpoints to resume a later attempt from. Not part of any artifact; only workers read them. */
export const checkpointPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}/`;

/** Files that a job's attempts share. Not needed after the job has completed. */
export const runPrefix = (jobId: string): string => `runs/${jobId}/`;

/**
 * For output that is discarded: a job that places a deployment again must not overwrite the files
 * of the job that made the deployment.
 */
export const discardedOutputPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}-output/`;

/** The key of an upload that is not complete. */
export const partialKey = (jobId: string, attempt: number, name: string): string =>
  `${uploadPrefix(jobId)}attempt-${attempt}/${name}`;

export const uploadPrefix = (jobId: string): string => `uploads/${jobId}/`;
