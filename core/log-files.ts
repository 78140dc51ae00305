/** Where the log of an attempt lies in the store. Derived, never taken from a worker's word. */
export const logKey = (jobId: string, attempt: number): string =>
  `artifacts/logs/${jobId}/attempt-${attempt}.log`;
