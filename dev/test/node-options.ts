/** Node option for tests: fewer minor garbage collections, which saves a tenth of the CPU time. */
export const FEWER_COLLECTIONS = "--min-semi-space-size=16";

/**
 * Node options for processes that live for seconds, such as the forge-servers of one test file.
 * They turn off the optimizing compiler, which would cost more time than it saves. They also
 * override forge-server's own maximum semi-space size.
 */
export const SHORT_LIVED = [FEWER_COLLECTIONS, "--max-semi-space-size=16", "--no-opt"];
