/** For Node processes of tests: new objects are collected less often, which saves a tenth of the CPU time. */
export const FEWER_COLLECTIONS = "--min-semi-space-size=16";

/**
 * For those that live for seconds, as forge-servers of one test file: no code is optimized, which would cost more
 * than it gains.
 */
export const SHORT_LIVED = [FEWER_COLLECTIONS, "--no-opt"];
