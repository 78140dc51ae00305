import { ForgeError } from "../../core/errors";
import type { Cap } from "../../platform/config/limits";

/** What each cap counts, as worded in error messages. */
const WHAT: Record<Cap["name"], string> = {
  waiting_requests: "waiting requests",
  waiting_polls: "waiting requests of workers",
  open_uploads: "open uploads",
  keys: "keys",
  sessions: "sessions",
  workers: "registered workers",
  queued_jobs: "queued jobs",
  queued_shapes: "different requirements among queued jobs",
  stored_bytes: "bytes in the store",
};

/**
 * Caps whose use falls over time, so a later retry can succeed (429). For all other caps, the user
 * must first remove something (409).
 */
const TRANSIENT: Cap["name"][] = [
  "waiting_requests",
  "waiting_polls",
  "open_uploads",
  "queued_jobs",
  "queued_shapes",
];

/**
 * @param used the current use of the cap.
 * @throws ForgeError `quota_exceeded` if the cap is reached: 429, or 409 if waiting doesn't help.
 */
export function requireBelow({ name, variable, limit }: Cap, used: number): void {
  if (limit === null || used < limit) return;
  const status = TRANSIENT.includes(name) ? 429 : 409;
  const what = `you have ${used} ${WHAT[name]}; the limit is ${limit}`;
  throw quotaExceeded(status, what, { cap: name, variable, limit, used });
}

export const quotaExceeded = (
  status: 409 | 413 | 429,
  what: string,
  details: { cap: string; variable: string; limit: number; used: number },
): ForgeError => {
  const message = `${what}; the server's operator sets it with ${details.variable}`;
  return new ForgeError(status, "quota_exceeded", message, undefined, details);
};
