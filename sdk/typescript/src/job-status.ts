import type { Job } from "./schema.ts";

/** What a client needs to know of a job's state; `raw_status` has the state itself. */
export type JobStatus = "pending" | "running" | "completed" | "failed";

/** Also of a state that this version does not know: has it ended, it did not complete. */
export function jobStatus(raw: string, hasEnded = false): JobStatus {
  if (raw === "running" || raw === "completed" || raw === "failed") return raw;
  return hasEnded && raw !== "pending" ? "failed" : "pending";
}

/** A change of a job: of its status, or of its progress. */
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
