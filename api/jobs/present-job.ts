import { z } from "zod";
import { ARTIFACT_FORMS } from "../../core/artifacts/artifacts";
import { NO_USAGE } from "../../core/billing/usage";
import { isJobType, JOB_TYPES } from "../../core/jobs/job-types";
import { PENDING_CODES, type PendingReason } from "../../core/jobs/pending-reason";
import { ERROR_CODES, JOB_STATUSES, OUTCOMES } from "../../core/jobs/states";
import { timestamp } from "../../core/timestamp";
import { jobWorkflowId } from "../../core/workflow-ids";
import type { AttemptRow } from "../../services/jobs/attempts";
import type { ShownJob } from "../../services/jobs/shown-jobs";
import type { JobCost } from "../billing/job-costs";
import { nullableNumber, nullableText } from "../fields";

const anyObject = z.record(z.string(), z.unknown());

const warning = z
  .object({ code: z.string(), param: z.string(), message: z.string() })
  .meta({ id: "Warning" });

const pendingReason = z
  .object({
    code: z.enum(PENDING_CODES),
    message: z.string(),
    requirement: z
      .object({
        name: z.string().describe("name of the requirement, e.g. gpu_type"),
        needed: z.union([z.string(), z.number()]),
        available: z.union([z.string(), z.number()]).nullable(),
      })
      .nullable()
      .describe("the requirement that the best-matching worker does not meet, if no worker fits"),
    queue_position: z
      .int()
      .min(1)
      .nullable()
      .describe(
        "place in the queue; 1 is next. Null if the queue is too long to count, or if `code` is " +
          "neither `workers_busy` nor `over_share`",
      ),
  })
  .meta({ id: "PendingReason" });

/** A job, as spec.md 2.1 and contract.md define it. */
export const jobSchema = z
  .object({
    job_id: z.string(),
    job_type: z.enum(JOB_TYPES),
    user_id: z.string(),
    created_by: z.string().describe("the name of the key that submitted it"),
    payload: anyObject.describe(
      "the job's payload. Aliases are replaced, e.g. `num_samples` by `size`, `teacher_model` by `teacher`",
    ),
    status: z.enum(JOB_STATUSES),
    attempts: z.int().describe("how often the job was dispatched to a worker"),
    worker_id: nullableText,
    result: anyObject.nullable(),
    error: nullableText,
    error_code: z.enum(ERROR_CODES).nullable(),
    created_at: timestamp,
    started_at: timestamp.nullable(),
    completed_at: timestamp.nullable(),
    artifacts_uri: nullableText,
    artifacts_url: nullableText.describe(
      "URL that lists the artifact's files; each file is below this URL. Null if the files are only in a bucket of the worker",
    ),
    logs_uri: nullableText,
    logs_url: z.string().describe("URL of the log in this API"),
    resources: anyObject,
    params: anyObject,
    notes: nullableText,
    timeout_s: z.int(),
    max_attempts: z.int(),
    progress: z.number().min(0).max(1).nullable(),
    priority: z.int(),
    tags: z.array(z.string()),
    pipeline_id: nullableText,
    pipeline_step: nullableText.describe("the job's step in the pipeline"),
    deployment_id: nullableText.describe(
      "the deployment, if Forge made this job to start another server for it; null for the job that made the deployment",
    ),
    retried_from: nullableText.describe("the job whose payload this job repeats"),
    pending_reason: pendingReason
      .nullable()
      .describe(
        "why the job waits, at most five seconds old; null if it does not wait or was just submitted",
      ),
    cancel_requested_at: timestamp.nullable(),
    cancelled_by: nullableText.describe(
      "the name of the key that cancelled the job; or `pipeline`, `deployment` or `temporal`, if no key did",
    ),
    workflow_id: z.string().describe("id of the job's workflow in Temporal"),
    workflow_url: nullableText.describe(
      "URL of the workflow in Temporal's UI; null if no UI is configured. The answer to a submission has null",
    ),
    cost_usd: nullableNumber.describe(
      "cost in the job's billing record; for a live deployment, the cost so far; null if there is no record",
    ),
    estimated_cost_usd: nullableNumber.describe(
      "for an unfinished job, the expected cost of an attempt that succeeds; null in the answer to the submission",
    ),
    stuck: z
      .object({ activity: z.string(), tries: z.int(), since: timestamp })
      .nullable()
      .describe(
        "the activity of the job's workflow that keeps failing or hanging, and is retried; null: " +
          "none. If the job's work is over but its result or bill can't be written, Forge's " +
          "operator can end the job",
      ),
    warnings: z.array(warning).optional(),
  })
  .meta({ id: "Job" });

export type Job = z.infer<typeof jobSchema>;

/** Fields of a job that are not in its row. */
interface ExtraFields {
  pendingReason?: PendingReason | undefined;
  cost?: JobCost | undefined;
  /** The URL of a workflow in Temporal's UI, by its id; null if no UI is configured. */
  workflowUrl?: (workflowId: string) => string | null;
}

export function presentJob(
  job: ShownJob,
  { pendingReason, cost, workflowUrl = () => null }: ExtraFields = {},
): Job {
  return {
    job_id: job.job_id,
    job_type: job.job_type,
    user_id: job.user_id,
    created_by: job.created_by,
    payload: job.payload,
    status: job.status,
    attempts: job.attempts,
    worker_id: job.worker_id,
    result: job.result,
    error: job.error,
    error_code: job.error_code,
    created_at: job.created_at.toISOString(),
    started_at: job.started_at?.toISOString() ?? null,
    completed_at: job.completed_at?.toISOString() ?? null,
    artifacts_uri: job.artifacts_uri,
    artifacts_url: artifactUrlOf(job),
    logs_uri: job.logs_uri,
    logs_url: `/api/jobs/${job.job_id}/logs`,
    resources: job.resources,
    params: job.params,
    notes: job.notes,
    timeout_s: job.timeout_s,
    max_attempts: job.max_attempts,
    progress: job.progress,
    priority: job.priority,
    tags: job.tags,
    pipeline_id: job.pipeline_id,
    pipeline_step: job.pipeline_step,
    deployment_id: job.deployment_id,
    retried_from: job.retried_from,
    pending_reason: pendingReason ?? null,
    cancel_requested_at: job.cancel_requested_at?.toISOString() ?? null,
    cancelled_by: job.cancelled_by,
    workflow_id: jobWorkflowId(job.job_id),
    workflow_url: workflowUrl(jobWorkflowId(job.job_id)),
    cost_usd: cost?.costUsd ?? null,
    estimated_cost_usd: cost?.estimatedUsd ?? null,
    stuck: job.stuck ? { ...job.stuck, since: new Date(job.stuck.since).toISOString() } : null,
    ...(job.warnings.length > 0 ? { warnings: job.warnings } : {}),
  };
}

/**
 * The URL of the files of the job's artifact. Null if there is no artifact, or if its files are
 * only in a bucket that Forge can't read.
 */
function artifactUrlOf({ job_type: type, result, has_files: hasFiles }: ShownJob): string | null {
  // After a rollback of the server, there may be jobs of a type that only the later release knows.
  const id = isJobType(type) ? result?.[ARTIFACT_FORMS[type].idField] : undefined;
  return hasFiles && typeof id === "string" ? `/api/artifacts/${id}/files` : null;
}

export const attemptSchema = z
  .object({
    attempt: z.int(),
    worker_id: nullableText,
    queued_at: timestamp,
    assigned_at: timestamp.nullable(),
    started_at: timestamp.nullable(),
    ended_at: timestamp.nullable(),
    outcome: z.enum(OUTCOMES).nullable(),
    error: nullableText,
    usage: z
      .record(z.string(), nullableNumber)
      .nullable()
      .describe(
        "usage that the worker reported; `gpu_hours` is null if the worker did not report it",
      ),
    gpu_hours_measured: nullableNumber.describe(
      "time from the attempt's dispatch to its end, multiplied by the worker's number of GPUs; " +
        "upper limit of the billed GPU hours",
    ),
  })
  .meta({ id: "Attempt" });

export function presentAttempt(attempt: AttemptRow): z.infer<typeof attemptSchema> {
  return {
    attempt: attempt.attempt,
    worker_id: attempt.worker_id,
    queued_at: attempt.queued_at.toISOString(),
    assigned_at: attempt.assigned_at?.toISOString() ?? null,
    started_at: attempt.started_at?.toISOString() ?? null,
    ended_at: attempt.ended_at?.toISOString() ?? null,
    outcome: attempt.outcome,
    error: attempt.error,
    usage: attempt.usage ? { ...NO_USAGE, ...attempt.usage } : null,
    gpu_hours_measured: attempt.gpu_hours_measured,
  };
}
