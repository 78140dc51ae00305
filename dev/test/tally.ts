/** The result of a suite. */
export interface Tally {
  suite: string;
  passed: number;
  failed: number;
  skipped: number;
  /**
   * Name and first lines of each failure. Printed at the end, because CI cuts long output in the
   * middle.
   */
  failures: string[];
  /** The time of each file. */
  files: { path: string; seconds: number }[];
  /** The total time of the suite's files or commands. */
  seconds: number;
}

export const emptyTally = (suite: string): Tally => ({
  suite,
  passed: 0,
  failed: 0,
  skipped: 0,
  failures: [],
  files: [],
  seconds: 0,
});

export const failedTally = (suite: string, failure: string): Tally =>
  withFailure(emptyTally(suite), failure);

export const withFailure = (tally: Tally, failure: string): Tally => ({
  ...tally,
  failed: tally.failed + 1,
  failures: [...tally.failures, failure],
});
