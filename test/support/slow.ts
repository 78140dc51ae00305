/**
 * For scenarios that only `npm run test:slow` runs, because `npm test` has one of their kind. Their file is listed
 * in dev/test/suites.ts.
 */
export const slowTest = process.env.TEST_SLOW ? test : test.skip;
export const slowDescribe = process.env.TEST_SLOW ? describe : describe.skip;
