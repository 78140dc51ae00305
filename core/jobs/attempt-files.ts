/** Where the log of an attempt lies in the store. Derived, never taken from a worker's word. */
export const logKey = (jobId: string, attempt: number): string =>
  `artifacts/logs/${jobId}/attempt-${attempt}.log`;

/** Where an attempt leaves what a later one goes on from; in no artifact, and shown to nobody else. */
export const checkpointPrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}/`;

/** All that attempts of a job leave for each other; of no use once it has completed. */
export const runPrefix = (jobId: string): string => `runs/${jobId}/`;

/** What an attempt makes for nobody: of a deployment that is placed again, the first has left the files. */
export const sparePrefix = (jobId: string, attempt: number): string =>
  `${runPrefix(jobId)}attempt-${attempt}-output/`;

/** Where a file gathers until it is whole. */
export const partialKey = (jobId: string, attempt: number, name: string): string =>
  `${uploadPrefix(jobId)}attempt-${attempt}/${name}`;

export const uploadPrefix = (jobId: string): string => `uploads/${jobId}/`;
