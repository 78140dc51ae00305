/** A job's statuses (spec.md, 3.1). `completed` and `failed` are final. */
export const JOB_STATUSES = [
  "pending",
  "provisioning_worker",
  "assigned",
  "running",
  "completed",
  "failed",
] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

const FINAL_STATUSES: readonly JobStatus[] = ["completed", "failed"];

export const isFinal = (status: JobStatus): boolean => FINAL_STATUSES.includes(status);

/** True if the job has not ended and no attempt of it is assigned or running. */
export const waitsForWorker = (status: JobStatus): boolean =>
  status === "pending" || status === "provisioning_worker";

export const WORKER_STATUSES = ["bootstrapping", "idle", "busy", "error", "dead"] as const;
export type WorkerStatus = (typeof WORKER_STATUSES)[number];

/**
 * Why a worker has the status `error`. Every error ends when the worker registers again.
 * `unresponsive` also ends with the worker's next poll. An admin can reset every error except
 * `bootstrap_failed`, for which the admin can start another bootstrap.
 */
export const WORKER_ERROR_CODES = [
  "reported",
  "failing",
  "unresponsive",
  "bootstrap_failed",
] as const;
export type WorkerErrorCode = (typeof WORKER_ERROR_CODES)[number];

/** How an attempt ended. An attempt without an outcome has not ended. */
export const OUTCOMES = ["completed", "failed", "worker_lost", "timeout", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/**
 * The reason why a job failed. The server never writes `bootstrap_failed`: if a bootstrap fails,
 * the job waits for another worker. The code remains because it is part of the contract with
 * clients.
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

/** How an attempt ended. The workflow decides from it whether the job gets another attempt. */
export interface AttemptEnd {
  outcome: Outcome;
  /** Only with `failed`: the worker requested another attempt. */
  retryable?: boolean;
  /** Only with `failed`: the error code, if Forge refused the result. Default: `job_error`. */
  errorCode?: ErrorCode;
}

/** The error code of a job whose last attempt ended this way. */
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
