/** DuckDB could not create its database, so it has not looked at the file yet. */
export class SessionFailed extends Error {}

/**
 * DuckDB's message when a system call on the file failed. Its other IO errors are about the content
 * of the file: for example "Could not read enough bytes" if a parquet footer names bytes beyond the
 * end.
 */
const SYSTEM_CALL = /^IO Error: (?:Could not|Cannot) (?!read enough)/;

/** Error texts of DuckDB and of the system if the machine lacks memory or threads. */
const LACK = /\(bad allocation\)|Allocation failure|Cannot allocate memory|Resource temporarily/;

/**
 * Describes an error of the machine, without a path: a failed system call, an error of the disk, or
 * a lack of memory or threads. Undefined: the error is about the file, or the file exceeded a
 * limit.
 */
export function interruptionOf(error: unknown): string | undefined {
  if (error instanceof SessionFailed) return "the reader could not start its database";
  if (!(error instanceof Error)) return undefined;
  // An error of Node.js; DuckDB's errors have no code.
  if ("code" in error) return `the system says ${String(error.code)}`;
  if (SYSTEM_CALL.test(error.message)) return "the disk had an error";
  return LACK.test(error.message) ? "the machine had no memory or threads left" : undefined;
}
