import type { JobType } from "../../core/job-types";
import type { RateCard } from "../../core/pricing";
import type { Requirements } from "../../core/requirements";
import type { ErrorCode, JobStatus } from "../../core/states";
import { all, execute, maybeOne, type Queryable } from "./pool";
import type { Viewer } from "./viewer";

/** What is odd about an accepted submission. */
export interface JobWarning {
  code: string;
  param: string;
  message: string;
}

export interface JobRow {
  job_id: string;
  user_id: string;
  created_by: string;
  job_type: JobType;
  payload: Record<string, unknown>;
  resources: Record<string, unknown>;
  params: Record<string, unknown>;
  tags: string[];
  notes: string | null;
  warnings: JobWarning[];
  priority: number;
  timeout_s: number;
  max_attempts: number;
  rate_card: RateCard;
  request_id: string;
  status: JobStatus;
  attempts: number;
  worker_id: string | null;
  progress: number | null;
  result: Record<string, unknown> | null;
  error: string | null;
  error_code: ErrorCode | null;
  artifacts_uri: string | null;
  logs_uri: string | null;
  pipeline_id: string | null;
  retried_from: string | null;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
}

export interface NewJob {
  jobId: string;
  userId: string;
  createdBy: string;
  jobType: JobType;
  payload: Record<string, unknown>;
  resources: Record<string, unknown>;
  params: Record<string, unknown>;
  tags: string[];
  notes: string | null;
  warnings: JobWarning[];
  retriedFrom: string | null;
  priority: number;
  timeoutS: number;
  maxAttempts: number;
  requirements: Requirements;
  shape: string;
  rateCard: RateCard;
  requestId: string;
  /** Ids for the first attempt's artifacts. */
  outputIds: Record<string, string>;
  /** For how long the inserting process alone may start the workflow, in seconds. */
  leaseS: number;
}

/** Writes the job, its first attempt and the debt to start its workflow; claimable from here on. */
export async function insertJob(db: Queryable, job: NewJob): Promise<JobRow> {
  const row = await maybeOne<JobRow>(
    db,
    `with job as (
       insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags,
                         notes, warnings, priority, timeout_s, max_attempts, req_gpu_count,
                         req_gpu_tokens, req_memory_gb, req_tags, rate_card,
                         request_id, retried_from)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $23, $17,
               $18, $22)
       returning *),
     first as (
       insert into attempts (job_id, attempt, shape, priority, output_ids)
       select job_id, 1, $19, priority, $20 from job),
     owed as (
       insert into outbox (job_id, attempt, due_at)
       select job_id, 0, now() + make_interval(secs => $21) from job)
     select * from job`,
    [
      job.jobId,
      job.userId,
      job.createdBy,
      job.jobType,
      job.payload,
      job.resources,
      job.params,
      job.tags,
      job.notes,
      JSON.stringify(job.warnings),
      job.priority,
      job.timeoutS,
      job.maxAttempts,
      job.requirements.gpuCount,
      job.requirements.gpuTokens,
      job.requirements.memoryGb,
      job.rateCard,
      job.requestId,
      job.shape,
      job.outputIds,
      job.leaseS,
      job.retriedFrom,
      job.requirements.tags,
    ],
  );
  if (!row) throw new Error("insert returned no job");
  return row;
}

export async function findJob(
  db: Queryable,
  jobId: string,
  viewer: Viewer,
): Promise<JobRow | undefined> {
  return await maybeOne<JobRow>(
    db,
    "select * from jobs where job_id = $1 and ($2::text is null or user_id = $2)",
    [jobId, viewer],
  );
}

/** Takes the job's lock, always the first of a transaction (then attempt, then worker). */
export async function lockJob(db: Queryable, jobId: string): Promise<JobRow | undefined> {
  return await maybeOne<JobRow>(db, "select * from jobs where job_id = $1 for no key update", [
    jobId,
  ]);
}

/** A lost attempt of a job that has more goes back to `pending` at once, whatever Temporal does. */
export async function returnToPending(db: Queryable, jobId: string): Promise<void> {
  await execute(
    db,
    `update jobs set status = 'pending', worker_id = null, progress = null
     where job_id = $1 and status = any('{assigned,running}')`,
    [jobId],
  );
}

/** The last write of a job that failed. */
export async function failJob(
  db: Queryable,
  jobId: string,
  attempt: number,
  code: ErrorCode,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update jobs j set status = 'failed', completed_at = now(), error_code = $3, error = a.error,
            worker_id = a.worker_id, logs_uri = a.logs_uri
     from attempts a
     where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2
       and j.status = any('{pending,provisioning_worker,assigned,running}')`,
    [jobId, attempt, code],
  );
  return changed === 1;
}

/** Progress as the worker tells it, of the live attempt only. */
export async function reportProgress(
  db: Queryable,
  workerId: string,
  jobId: string,
  progress: number,
): Promise<void> {
  await execute(
    db,
    `update jobs set progress = $3
     where job_id = $2 and worker_id = $1 and status = 'running' and progress is distinct from $3`,
    [workerId, jobId, progress],
  );
}

export interface StandingJob
  extends Pick<JobRow, "job_id" | "user_id" | "job_type" | "max_attempts" | "request_id"> {
  latest_attempt: number;
  latest_ended: boolean;
}

/** Unfinished jobs that owe Temporal nothing and have not moved for a while; each is handed out once. */
export async function claimStandingJobs(
  db: Queryable,
  afterS: number,
  limit: number,
): Promise<StandingJob[]> {
  return await all<StandingJob>(
    db,
    `with standing as (
       select job_id from jobs j
       where status not in ('completed', 'failed')
         and reconciled_at < now() - make_interval(secs => $1)
         and moved_at < now() - make_interval(secs => $1)
         and not exists (select from outbox o where o.job_id = j.job_id)
       order by reconciled_at limit $2 for no key update skip locked)
     update jobs j set reconciled_at = now() from standing s, lateral (
       select attempt, state = 'ended' as ended from attempts a
       where a.job_id = s.job_id order by attempt desc limit 1) latest
     where j.job_id = s.job_id
     returning j.job_id, j.user_id, j.job_type, j.max_attempts, j.request_id,
               latest.attempt as latest_attempt, latest.ended as latest_ended`,
    [afterS, limit],
  );
}
