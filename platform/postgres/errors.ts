/** SQLSTATE codes of a serialization failure and of a deadlock. */
const RACE_CODES = new Set(["40001", "40P01"]);

/**
 * SQLSTATE codes of values that Postgres can't hold: NUL, half a surrogate pair, a time or number
 * out of range.
 */
const BAD_VALUE_CODES = new Set(["22P05", "22021", "22007", "22008", "22009", "22003"]);

/** SQLSTATE classes: connection exception, insufficient resources, operator intervention. */
const UNAVAILABLE_CLASSES = ["08", "53", "57"];

const UNAVAILABLE_ERRNOS = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EHOSTUNREACH",
]);

/** Messages of pg's own errors for a broken connection or a time-out. These errors have no code. */
const UNAVAILABLE_MESSAGES =
  /^(Query read timeout|timeout exceeded when trying to connect|timeout expired|Connection terminated|Client has encountered a connection error|Client was closed)/;

/** Whether pg waited for a response for too long. */
export const isTimeout = (error: unknown): error is Error =>
  error instanceof Error && error.message === "Query read timeout";

function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/**
 * Whether a table changed after the statement was prepared. Within a transaction, the statement
 * can't be prepared again.
 */
export const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === "0A000" && (error as { routine?: unknown }).routine === "RevalidateCachedQuery";

/** Whether to retry the transaction: after a deadlock, serialization failure or changed table. */
export const isRetryable = (error: unknown): boolean =>
  RACE_CODES.has(codeOf(error) ?? "") || isStalePlan(error);

/** Whether a lock was not available within `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === "55P03";

export const isBadValue = (error: unknown): boolean => BAD_VALUE_CODES.has(codeOf(error) ?? "");

/**
 * An SQLSTATE has five characters and never begins with E. Error codes of the operating system can
 * also have five characters, such as EBUSY, but they begin with E.
 */
const SQLSTATE = /^(?!E)[0-9A-Z]{5}$/;

/** Whether Postgres failed: it reported an SQLSTATE, or could not be reached. */
export const isDatabaseError = (error: unknown): boolean =>
  isUnavailable(error) || SQLSTATE.test(codeOf(error) ?? "");

/** Whether Postgres is unavailable, as opposed to refusing a statement. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Connecting to a name with several addresses fails with one error per address.
  if (error instanceof AggregateError) return error.errors.some(isUnavailable);
  const code = codeOf(error);
  if (code !== undefined) {
    return (
      UNAVAILABLE_ERRNOS.has(code) ||
      (code.length === 5 && UNAVAILABLE_CLASSES.includes(code.slice(0, 2)))
    );
  }
  return UNAVAILABLE_MESSAGES.test(error.message);
}
