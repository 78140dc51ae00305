/** A job's six statuses (spec.md, 3.1). `completed` and `failed` are never left. */
export const JOB_STATUSES = [
  "pending",
  "provisioning_worker",
  "assigned",
  "running",
  "completed",
  "failed",
] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

/** Never left. */
const FINAL_STATUSES: readonly JobStatus[] = ["completed", "failed"];

export const isFinal = (status: JobStatus): boolean => FINAL_STATUSES.includes(status);

/** No attempt of it runs: not yet, or not any more. */
export const waitsForWorker = (status: JobStatus): boolean =>
  status === "pending" || status === "provisioning_worker";

export const WORKER_STATUSES = ["bootstrapping", "idle", "busy", "error", "dead"] as const;
export type WorkerStatus = (typeof WORKER_STATUSES)[number];

/** Why a worker is in `error`. An unresponsive one leaves it by asking for work, any other by registering again. */
export const WORKER_ERROR_CODES = [
  "reported",
  "failing",
  "unresponsive",
  "bootstrap_failed",
] as const;
export type WorkerErrorCode = (typeof WORKER_ERROR_CODES)[number];

/** How one attempt ended. An attempt without an outcome is live. */
export const OUTCOMES = ["completed", "failed", "worker_lost", "timeout", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/**
 * Why a job ended `failed`. Of a worker whose bootstrap failed the jobs wait for another one: so no job ends by
 * `bootstrap_failed`, which clients know as a code all the same.
 */
export const ERROR_CODES = [
  "job_error",
  "worker_lost",
  "timeout",
  "cancelled",
  "bootstrap_failed",
  "artifact_conflict",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** What an attempt's end means for its job; the workflow decides by it whether another follows. */
export interface AttemptEnd {
  outcome: Outcome;
  /** Only with `failed`: the worker asked for another attempt. */
  retryable?: boolean;
  /** Only with `failed`: why, where the worker's own word is not the reason. */
  errorCode?: ErrorCode;
}

/** True when the job deserves another attempt, were there any left. */
export function deservesAnotherAttempt(end: AttemptEnd): boolean {
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

/** True when another attempt follows one that ended so: its job deserves it, and has one left. */
export const isOwedAnotherAttempt = (
  job: { attempts: number; max_attempts: number },
  end: AttemptEnd,
): boolean => deservesAnotherAttempt(end) && job.attempts < job.max_attempts;

/** The error code of a job whose last attempt ended so. */
export function errorCodeOf(end: AttemptEnd): ErrorCode {
  switch (end.outcome) {
    case "worker_lost":
    case "timeout":
    case "cancelled":
      return end.outcome;
    case "failed":
    case "completed":
      return end.errorCode ?? "job_error";
  }
}
