/**
 * For Node processes of tests: fewer minor garbage collections, which saves a tenth of the CPU
 * time.
 */
export const FEWER_COLLECTIONS = "--min-semi-space-size=16";

/**
 * For processes that live for seconds, such as the forge-servers of one test file: no optimizing
 * compiler, which would cost more than it gains. Overrides the maximum semi-space size in
 * forge-server's own options.
 */
export const SHORT_LIVED = [FEWER_COLLECTIONS, "--max-semi-space-size=16", "--no-opt"];
