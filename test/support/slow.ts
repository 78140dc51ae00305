/**
 * For scenarios that only `npm run test:slow` runs, because `npm test` has one of their kind. Their file is listed
 * in dev/test/suites.ts.
 */
export const slowTest = process.env.TEST_SLOW ? test : test.skip;
export const slowDescribe = process.env.TEST_SLOW ? describe : describe.skip;

/** Of several forms of one scenario the first; all of them in `npm run test:slow`. */
export const oneFormOf = <T>(forms: T[]): T[] =>
  process.env.TEST_SLOW ? forms : forms.slice(0, 1);
