import { isFinal } from "../../core/jobs/states";
import type { JobRow } from "./jobs";

/** The columns that an API response about a job contains unchanged. */
const SHOWN = [
  "job_id",
  "job_type",
  "user_id",
  "created_by",
  "payload",
  "status",
  "attempts",
  "worker_id",
  "result",
  "error",
  "error_code",
  "created_at",
  "started_at",
  "completed_at",
  "artifacts_uri",
  "logs_uri",
  "resources",
  "params",
  "notes",
  "timeout_s",
  "max_attempts",
  "progress",
  "priority",
  "tags",
  "warnings",
  "pipeline_id",
  "pipeline_step",
  "deployment_id",
  "retried_from",
  "cancel_requested_at",
  "cancelled_by",
] as const;

/** The columns that an API response needs to explain why a job waits, and to estimate its cost. */
const OF_UNFINISHED = [
  "rate_card",
  "req_gpu_count",
  "req_gpu_tokens",
  "req_memory_gb",
  "req_tags",
  "req_avoid",
  "expected_cost_usd",
] as const;

/**
 * A job with the columns that an API response needs. `DERIVED` computes `stuck`, `has_files` and
 * `bill`.
 */
export type ShownJob = Pick<JobRow, (typeof SHOWN)[number] | "stuck" | "has_files" | "bill">;

export type UnfinishedJob = ShownJob & Pick<JobRow, (typeof OF_UNFINISHED)[number]>;

export const isUnfinished = (job: ShownJob): job is UnfinishedJob => !isFinal(job.status);

/**
 * SQL: the stored columns of a ShownJob and of an UnfinishedJob. For ended jobs, returns null
 * instead of the columns of OF_UNFINISHED. Otherwise, for a list of jobs, the driver would spend a
 * quarter of the CPU time on parsing these columns.
 */
export const SHOWN_COLUMNS = [
  ...SHOWN,
  ...OF_UNFINISHED.map(
    (name) => `case when status not in ('completed', 'failed') then ${name} end as ${name}`,
  ),
].join(", ");
