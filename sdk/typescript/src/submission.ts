import type { Resources } from "./schema.ts";

/** Options of a submission, in addition to its payload. */
export interface SubmissionParams {
  /** Requirements for the worker. */
  resources?: Resources | undefined;
  /** From -100 to 100. */
  priority?: number | undefined;
  /** Labels to find the job by. */
  tags?: readonly string[] | undefined;
  /** Passed to the worker unchanged, e.g. `{ lr: 1e-4 }`. */
  params?: Record<string, unknown> | undefined;
  notes?: string | undefined;
  /** Time limit of one attempt, in seconds. */
  timeout_s?: number | undefined;
  max_attempts?: number | undefined;
}
