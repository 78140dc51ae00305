import type { TenantScope } from "../../core/accounts/permissions";
import type { ErrorCode, JobStatus } from "../../core/jobs/states";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { ALL_JOBS } from "./all-jobs";

/**
 * A change of a job's status. A trigger writes the event in the transaction of the change. If one
 * statement changes the status several times (assign-only-job.ts, start-new-job.ts), the trigger
 * writes only the last one, `running`, so the statement itself writes the others.
 */
export interface JobEventRow {
  event_id: number;
  job_id: string;
  status: JobStatus;
  attempts: number;
  worker_id: string | null;
  error_code: ErrorCode | null;
  created_at: Date;
}

/** A job's events after `afterId`, oldest first. */
export async function listJobEvents(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
  afterId: number,
) {
  return await all<JobEventRow>(
    db,
    `select event_id, job_id, status, attempts, worker_id, error_code, created_at from job_events
     where job_id = $1 and event_id > $2 and ($3::text is null or user_id = $3)
     order by event_id`,
    [jobId, afterId, tenantScope],
  );
}

export interface JobSnapshot {
  job_id: string;
  status: JobStatus;
  attempts: number;
  progress: number | null;
}

/** A job's state without its payload and result: these may be large, and a stream polls often. */
export async function findJobSnapshot(db: Queryable, jobId: string, tenantScope: TenantScope) {
  return await maybeOne<JobSnapshot>(
    db,
    `select job_id, status, attempts, progress from ${ALL_JOBS} jobs
     where job_id = $1 and ($2::text is null or user_id = $2)`,
    [jobId, tenantScope],
  );
}

/** The state of these jobs. The caller has checked that they belong to the tenant. */
export async function listJobSnapshots(db: Queryable, jobIds: string[]) {
  return await all<JobSnapshot & { last_event_id: number }>(
    db,
    `select j.job_id, j.status, j.attempts, j.progress, last.event_id as last_event_id
     from ${ALL_JOBS} j, lateral (
       select event_id from job_events e where e.job_id = j.job_id order by event_id desc limit 1) last
     where j.job_id = any($1)`,
    [jobIds],
  );
}
