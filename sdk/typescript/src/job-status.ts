import type { Job } from "./schema.ts";

/** A job's status, simplified. `raw_status` has the API's status. */
export type JobStatus = "pending" | "running" | "completed" | "failed";

/**
 * Simplifies the API's status.
 *
 * A status that is not in JobStatus becomes `failed` if the job has ended, otherwise `pending`.
 */
export function jobStatus(raw: string, hasEnded = false): JobStatus {
  if (raw === "running" || raw === "completed" || raw === "failed") return raw;
  return hasEnded && raw !== "pending" ? "failed" : "pending";
}

/** A change of a job's status or progress. */
export interface JobEvent {
  /** `status` or `progress`. */
  event: string;
  job_id: string;
  status?: JobStatus;
  raw_status?: Job["status"];
  progress?: number | null;
  attempts?: number;
  worker_id?: string | null;
  error_code?: string | null;
  at?: string;
}

export const isFinal = (status: JobStatus | undefined): boolean =>
  status === "completed" || status === "failed";
