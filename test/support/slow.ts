/**
 * For tests that only `npm run test:slow` runs, because a test of a similar scenario is in `npm
 * test`. Add the test file to SLOW in dev/test/suites.ts.
 */
export const slowTest = process.env.TEST_SLOW ? test : test.skip;
export const slowDescribe = process.env.TEST_SLOW ? describe : describe.skip;

/** Returns only the first of several forms of a scenario; in `npm run test:slow`, all of them. */
export const oneFormOf = <T>(forms: T[]): T[] =>
  process.env.TEST_SLOW ? forms : forms.slice(0, 1);

/**
 * Skips the test if there is a second Temporal worker (`npm run test:doubled`). The second one
 * would continue the work of the worker that the test stops.
 */
export const testAlone = process.env.TEST_DOUBLED ? test.skip : test;
export const slowTestAlone = process.env.TEST_DOUBLED ? test.skip : slowTest;
