/** A deadlock, or a serialization failure. */
const RACE_CODES = new Set(["40001", "40P01"]);

/** What Postgres can't hold: a NUL or half a surrogate pair, a time or a number out of its range. */
const BAD_VALUE_CODES = new Set(["22P05", "22021", "22007", "22008", "22009", "22003"]);

/** SQLSTATE classes that say the server is away, going away, or out of room. */
const AWAY_CLASSES = ["08", "53", "57"];

const AWAY_ERRNOS = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EHOSTUNREACH",
]);

/** What pg itself says, without a code, when a connection breaks or a time-out passes. */
const AWAY_MESSAGES =
  /^(Query read timeout|timeout exceeded when trying to connect|timeout expired|Connection terminated|Client has encountered a connection error|Client was closed)/;

function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/**
 * A prepared statement would now answer with other columns, because somebody changed a table. Within its
 * transaction it can't be prepared anew.
 */
export const isStalePlan = (error: unknown): boolean =>
  codeOf(error) === "0A000" && (error as { routine?: unknown }).routine === "RevalidateCachedQuery";

/** The transaction lost a race, or met a changed table, and may simply run again. */
export const mayRunAgain = (error: unknown): boolean =>
  RACE_CODES.has(codeOf(error) ?? "") || isStalePlan(error);

/** A lock was not to be had within `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === "55P03";

export const isBadValue = (error: unknown): boolean => BAD_VALUE_CODES.has(codeOf(error) ?? "");

/** Whether Postgres is what failed: it said so with an SQLSTATE, or could not be reached. */
export const isDatabaseError = (error: unknown): boolean =>
  isAway(error) || /^[0-9A-Z]{5}$/.test(codeOf(error) ?? "");

/** True when Postgres can't be reached, as opposed to refusing what it was asked. */
export function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // Connecting to a name with several addresses fails with one error for each.
  if (error instanceof AggregateError) return error.errors.some(isAway);
  const code = codeOf(error);
  if (code !== undefined) {
    return AWAY_ERRNOS.has(code) || (code.length === 5 && AWAY_CLASSES.includes(code.slice(0, 2)));
  }
  return AWAY_MESSAGES.test(error.message);
}
