/** For Node processes of tests: new objects are collected less often, which saves a tenth of the CPU time. */
export const FEWER_COLLECTIONS = "--min-semi-space-size=16";
