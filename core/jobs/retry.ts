import type { AttemptEnd } from "./states";

/** Maximum attempts of any job (contract.md, Constants). A job may set a lower `max_attempts`. */
export const MAX_ATTEMPTS = 3;

type RetryableEnd = Pick<AttemptEnd, "outcome" | "retryable">;

/**
 * True if this outcome allows another attempt, regardless of how many attempts are left.
 * `queueAttempt` in services/jobs/attempts.ts applies this rule in SQL: change both.
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

/**
 * True if the outcome allows another attempt, and the job has an attempt left. The workflow
 * (workflows/job.ts) then queues the next attempt without a delay.
 */
export const willRetry = (
  job: { attempts: number; max_attempts: number },
  end: RetryableEnd,
): boolean => isRetryable(end) && job.attempts < job.max_attempts;
