import { ForgeError } from "../../core/errors";
import type { Cap } from "../../platform/config/limits";

/** What there is too many of, as people call it. */
const WHAT: Record<Cap["name"], string> = {
  waiting_requests: "requests that wait",
  waiting_polls: "requests of workers that wait",
  open_uploads: "uploads under way",
  keys: "keys",
  sessions: "sessions",
  workers: "registered workers",
  queued_jobs: "jobs that wait for a worker",
  queued_shapes: "different requirements among the jobs that wait",
  stored_bytes: "bytes in the store",
};

/** Of these one may come free by itself; any other has to be given up by somebody. */
const PASSING: Cap["name"][] = [
  "waiting_requests",
  "waiting_polls",
  "open_uploads",
  "queued_jobs",
  "queued_shapes",
];

/**
 * @param used how many there are already.
 * @throws ForgeError 429 or, where waiting doesn't help, 409 `quota_exceeded` when no other may be added.
 */
export function requireBelow({ name, variable, limit }: Cap, used: number): void {
  if (limit === null || used < limit) return;
  const status = PASSING.includes(name) ? 429 : 409;
  const what = `you have ${used} ${WHAT[name]}, and may have ${limit}`;
  throw quotaExceeded(status, what, { cap: name, variable, limit, used });
}

/** The refusal, with the numbers as its details. */
export const quotaExceeded = (
  status: 409 | 413 | 429,
  what: string,
  details: { cap: string; variable: string; limit: number; used: number },
): ForgeError => {
  const message = `${what}; whoever runs this server sets that by ${details.variable}`;
  return new ForgeError(status, "quota_exceeded", message, undefined, details);
};
