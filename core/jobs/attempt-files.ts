/** The store key of an attempt's log. Never taken from worker input. */
export const logKey = (jobId: string, attempt: number): string =>
  `artifacts/logs/${jobId}/attempt-${attempt}.log`;

/**
 * The folder of an attempt's checkpoints, from which a later attempt can resume. They are not part
 * of any artifact; only workers read them.
 */
export const checkpointPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}/`;

/** The folder of the files that a job's attempts share. Not needed after the job has completed. */
export const runPrefix = (jobId: string): string => `runs/${jobId}/`;

/**
 * The folder for output that is discarded. A job that places a deployment again uploads here, so
 * that it does not overwrite the files of the job that made the deployment.
 */
export const discardedOutputPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}-output/`;

/** The key of an upload that is not complete. */
export const partialKey = (jobId: string, attempt: number, name: string): string =>
  `${uploadPrefix(jobId)}attempt-${attempt}/${name}`;

export const uploadPrefix = (jobId: string): string => `uploads/${jobId}/`;
