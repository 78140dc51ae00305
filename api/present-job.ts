import type { AttemptRow } from "../infra/database/attempts";
import type { JobRow } from "../infra/database/jobs";

/** A Job as spec.md 2.1 and contract.md have it. */
export function presentJob(job: JobRow) {
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
    logs_uri: job.logs_uri,
    resources: job.resources,
    params: job.params,
    notes: job.notes,
    timeout_s: job.timeout_s,
    max_attempts: job.max_attempts,
    progress: job.progress,
    priority: job.priority,
    tags: job.tags,
    pipeline_id: job.pipeline_id,
    retried_from: job.retried_from,
    ...(job.warnings.length > 0 ? { warnings: job.warnings } : {}),
  };
}

export function presentAttempt(attempt: AttemptRow) {
  return {
    attempt: attempt.attempt,
    worker_id: attempt.worker_id,
    queued_at: attempt.queued_at.toISOString(),
    assigned_at: attempt.assigned_at?.toISOString() ?? null,
    started_at: attempt.started_at?.toISOString() ?? null,
    ended_at: attempt.ended_at?.toISOString() ?? null,
    outcome: attempt.outcome,
    error: attempt.error,
  };
}
