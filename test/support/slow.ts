/**
 * For scenarios that only `npm run test:slow` runs, because `npm test` covers a similar one. Add
 * their file to SLOW in dev/test/suites.ts.
 */
export const slowTest = process.env.TEST_SLOW ? test : test.skip;
export const slowDescribe = process.env.TEST_SLOW ? describe : describe.skip;

/** The first of several forms of one scenario; all of them in `npm run test:slow`. */
export const oneFormOf = <T>(forms: T[]): T[] =>
  process.env.TEST_SLOW ? forms : forms.slice(0, 1);

/**
 * Skipped if there is a second Temporal worker (`npm run test:doubled`): it would continue the work
 * of the one that the test stops.
 */
export const testAlone = process.env.TEST_DOUBLED ? test.skip : test;
export const slowTestAlone = process.env.TEST_DOUBLED ? test.skip : slowTest;
