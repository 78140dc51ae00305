/**
 * For Node processes of tests, which live for seconds: new objects are collected less often, and no code is
 * optimized, which would cost more than it gains. Each saves a tenth of the CPU time or more.
 */
export const SHORT_LIVED = ["--min-semi-space-size=16", "--no-opt"];
