/** The store key of an attempt's log. Never taken from worker input. */
export const logKey = (jobId: string, attempt: number): string =>
  `artifacts/logs/${jobId}/attempt-${attempt}.log`;

/**
 * The folder of an attempt's checkpoints, from which a later attempt can resume. They are not part
 * of any artifact; only workers read them.
 */
export const checkpointPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}/`;

/** The folder of a job's checkpoints and discarded output. Not needed after the job has ended. */
export const runPrefix = (jobId: string): string => `runs/${jobId}/`;

/**
 * The output folder of a job that starts another server of an existing deployment. The output is
 * discarded, because the deployment's first job has already stored the deployment's files.
 */
export const discardedOutputPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}-output/`;

/** The key of an upload that is not complete. */
export const partialKey = (jobId: string, attempt: number, name: string): string =>
  `${uploadPrefix(jobId)}attempt-${attempt}/${name}`;

export const uploadPrefix = (jobId: string): string => `uploads/${jobId}/`;
