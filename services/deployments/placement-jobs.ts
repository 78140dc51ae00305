import { requirementGroupOf } from "../../core/jobs/requirements";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { IDLE, MAY_RUN } from "../fleet/eligibility-sql";
import { requirementsAvoiding } from "../jobs/avoided-workers";
import type { JobRow } from "../jobs/jobs";

export interface NewPlacementJob {
  jobId: string;
  deploymentId: string;
  placement: number;
  /** The deployment's first job, which this one repeats. */
  first: JobRow;
  /** Workers that serve the deployment already. */
  avoid: string[];
}

/**
 * Inserts a job that adds a placement to an existing deployment. A worker can get the job as soon
 * as the transaction commits. The job has no outbox entry, because the deployment's workflow starts
 * the job's workflow.
 */
export async function insertPlacementJob(
  db: Queryable,
  { jobId, deploymentId, placement, first, avoid }: NewPlacementJob,
): Promise<void> {
  const needs = requirementsAvoiding(first, avoid);
  const group = requirementGroupOf(first.user_id, needs);
  await execute(
    db,
    `with job as (
       insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, notes,
                         priority, timeout_s, max_attempts, req_gpu_count, req_gpu_tokens,
                         req_memory_gb, req_tags, req_avoid, rate_card, request_id, deployment_id,
                         placement)
       select $1, user_id, created_by, job_type, payload, resources, params, tags, notes,
              priority, timeout_s, max_attempts, req_gpu_count, req_gpu_tokens,
              req_memory_gb, req_tags, $2, rate_card, request_id, $3, $4
       from jobs where job_id = $5
       returning job_id, priority)
     insert into attempts (job_id, attempt, shape, priority, output_ids)
     select job_id, 1, $6, priority, jsonb_build_object('deployment_id', $3::text) from job`,
    [jobId, needs.avoid, deploymentId, placement, first.job_id, group],
  );
}

/**
 * Returns the deployment's unfinished jobs whose placements have ended: their results are not
 * needed. Leaves out jobs that are being cancelled, and jobs with a completed attempt.
 */
export async function listUnneededJobs(db: Queryable, deploymentId: string): Promise<string[]> {
  const rows = await all<{ job_id: string }>(
    db,
    `select j.job_id from jobs j join placements p using (job_id)
     where j.deployment_id = $1 and j.status not in ('completed', 'failed') and p.state = 'ended'
       and j.cancel_requested_at is null
       and not exists (select from attempts a where a.job_id = j.job_id and a.outcome = 'completed')`,
    [deploymentId],
  );
  return rows.map((row) => row.job_id);
}

/** SQL: whether an idle worker could serve deployment `d` and does not serve it yet. */
const HAS_IDLE = `exists (
  select from jobs j cross join lateral (
    select j.user_id, j.job_type, j.req_gpu_count, j.req_gpu_tokens, j.req_memory_gb, j.req_tags,
           array(select worker_id from placements p where p.deployment_id = d.deployment_id
                   and p.state in ('serving', 'stopping')) as req_avoid) q
  cross join workers w
  where j.job_id = d.job_id and ${IDLE} and ${MAY_RUN})`;

export async function hasIdleWorker(db: Queryable, deploymentId: string): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select from deployments d where d.deployment_id = $1 and ${HAS_IDLE}`,
    [deploymentId],
  );
  return row !== undefined;
}
