import type { AttemptEnd } from "./states";

/** Maximum attempts of any job (contract.md, Constants). A job may set a lower `max_attempts`. */
export const MAX_ATTEMPTS = 3;

type RetryableEnd = Pick<AttemptEnd, "outcome" | "retryable">;

/**
 * True if this outcome allows another attempt, regardless of how many are left. The workflow
 * (workflows/job.ts) queues the next attempt at once. `queueAttempt` in services/jobs/attempts.ts
 * has the same rule in SQL.
 */
export function isRetryable(end: RetryableEnd): boolean {
  switch (end.outcome) {
    case "worker_lost":
      return true;
    case "failed":
      return end.retryable === true;
    case "completed":
    case "timeout":
    case "cancelled":
      return false;
  }
}

/** True if another attempt follows: the outcome allows it, and the job has an attempt left. */
export const willRetry = (
  job: { attempts: number; max_attempts: number },
  end: RetryableEnd,
): boolean => isRetryable(end) && job.attempts < job.max_attempts;
