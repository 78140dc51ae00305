/** The store key of an attempt's log. Never taken from worker input. */
export const logKey = (jobId: string, attempt: number): string =>
  `artifacts/logs/${jobId}/attempt-${attempt}.log`;

/**
 * Checkpoints from which a later attempt resumes. Not part of any artifact; only workers read them.
 */
export const checkpointPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}/`;

/** Files that a job's attempts share. Not needed after the job has completed. */
export const runPrefix = (jobId: string): string => `runs/${jobId}/`;

/**
 * Output that is discarded: a job that places a deployment again must not overwrite the files of
 * the first placement.
 */
export const discardedOutputPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}-output/`;

/** The key of an upload that is not complete. */
export const partialKey = (jobId: string, attempt: number, name: string): string =>
  `${uploadPrefix(jobId)}attempt-${attempt}/${name}`;

export const uploadPrefix = (jobId: string): string => `uploads/${jobId}/`;
