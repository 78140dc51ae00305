/** What came of a suite. */
export interface Tally {
  suite: string;
  passed: number;
  failed: number;
  /** What failed, and why in short: printed once more at the end, where CI's output isn't cut. */
  failures: string[];
  /** Of each file, where they are known, in seconds. */
  files: { path: string; seconds: number }[];
  /** From the first file's start to the last one's end. */
  seconds: number;
}

export const emptyTally = (suite: string): Tally => ({
  suite,
  passed: 0,
  failed: 0,
  failures: [],
  files: [],
  seconds: 0,
});

export const failedTally = (suite: string, failure: string): Tally => ({
  ...emptyTally(suite),
  failed: 1,
  failures: [failure],
});
