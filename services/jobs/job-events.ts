import type { TenantScope } from "../../core/accounts/principal";
import type { ErrorCode, JobStatus } from "../../core/jobs/states";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";

/** A change of a job's status, written by a trigger in the transaction that made it. */
export interface JobEventRow {
  event_id: number;
  job_id: string;
  status: JobStatus;
  attempts: number;
  worker_id: string | null;
  error_code: ErrorCode | null;
  created_at: Date;
}

/** A job's events after a given one, oldest first. */
export async function listJobEvents(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
  afterId: number,
): Promise<JobEventRow[]> {
  return await all<JobEventRow>(
    db,
    `select event_id, job_id, status, attempts, worker_id, error_code, created_at from job_events
     where job_id = $1 and event_id > $2 and ($3::text is null or user_id = $3)
     order by event_id`,
    [jobId, afterId, tenantScope],
  );
}

export interface JobGlance {
  job_id: string;
  status: JobStatus;
  attempts: number;
  progress: number | null;
}

/** Where one job stands, without what it carries: that may be large, and a stream asks often. */
export async function glanceAtJob(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
): Promise<JobGlance | undefined> {
  return await maybeOne<JobGlance>(
    db,
    `select job_id, status, attempts, progress from jobs
     where job_id = $1 and ($2::text is null or user_id = $2)`,
    [jobId, tenantScope],
  );
}

/** Where these jobs stand, for whoever watches them; whose they are was asked before. */
export async function glanceAtJobs(
  db: Queryable,
  jobIds: string[],
): Promise<(JobGlance & { last_event_id: number })[]> {
  return await all(
    db,
    `select j.job_id, j.status, j.attempts, j.progress, last.event_id as last_event_id
     from jobs j, lateral (
       select event_id from job_events e where e.job_id = j.job_id order by event_id desc limit 1) last
     where j.job_id = any($1)`,
    [jobIds],
  );
}
