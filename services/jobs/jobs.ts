import type { TenantScope } from "../../core/accounts/principal";
import type { RateCard } from "../../core/billing/rate-card";
import type { JobType } from "../../core/jobs/job-types";
import type { Requirements } from "../../core/jobs/requirements";
import type { ErrorCode, JobStatus } from "../../core/jobs/states";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

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
  req_gpu_count: number;
  req_gpu_tokens: string[];
  req_memory_gb: number;
  req_tags: string[];
  req_avoid: string[];
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
  pipeline_step: string | null;
  retried_from: string | null;
  /** Of a job that places a deployment again: which one, and as which of its placements. */
  deployment_id: string | null;
  placement: number | null;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  cancel_requested_at: Date | null;
  cancelled_by: string | null;
  /** In USD, as it was estimated at submission; null where no budget asked. */
  expected_cost_usd: number | null;
  /** What its workflow can't write; this and the next two only where one job or a page of them is read. */
  stuck?: { activity: string; tries: number; since: string } | null;
  has_files?: boolean | null;
  bill?: { usd: number; state: "accruing" | "final" } | null;
}

/**
 * Columns of `jobs` that other tables give: the write that is stuck for longest, whether the artifact's files are
 * in our store (those of an artifact in a worker's own bucket may be in both), and its billing record.
 */
export const DERIVED = `(
  select jsonb_build_object('activity', activity, 'tries', tries, 'since', since)
  from stuck_writes where workflow_id = 'job:' || job_id and status not in ('completed', 'failed')
  order by since limit 1) as stuck,
  case when artifacts_uri is null then false when artifacts_uri like 'forge:%' then true else coalesce((
    -- Not EXISTS, which is planned as a scan of all artifacts.
    select r.manifest->'files'->0 is not null from artifacts r where r.job_id = jobs.job_id
    order by 1 desc limit 1), false)
  end as has_files,
  (select jsonb_build_object('usd', total_cost_usd, 'state', state)
   from billing_records b where b.job_id = jobs.job_id) as bill`;

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
  /** In USD; null where no budget asks. */
  expectedCostUsd: number | null;
  requestId: string;
  /** Ids for the first attempt's artifacts. */
  outputIds: Record<string, string>;
  /**
   * When the workflow starts if the first attempt has not ended before, in seconds from now; null where it
   * is the workflow that inserts its job.
   */
  startAfterS: number | null;
  /** Where the job is a pipeline's. */
  step?: { pipelineId: string; name: string; run: number; reuseKey: string | null };
}

/**
 * Writes the job, its first attempt and the debt to start its workflow; claimable from here on. A second
 * time it changes nothing, and answers nothing.
 */
export async function insertJob(db: Queryable, job: NewJob): Promise<JobRow | undefined> {
  return await maybeOne<JobRow>(
    db,
    `with job as (
       insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags,
                         notes, warnings, priority, timeout_s, max_attempts, req_gpu_count,
                         req_gpu_tokens, req_memory_gb, req_tags, rate_card,
                         request_id, retried_from, pipeline_id, pipeline_step, pipeline_run,
                         reuse_key, expected_cost_usd)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $23, $17,
               $18, $22, $24, $25, $26, $27, $28)
       on conflict (job_id) do nothing
       returning *),
     first as (
       insert into attempts (job_id, attempt, shape, priority, output_ids)
       select job_id, 1, $19, priority, $20 from job),
     owed as (
       insert into outbox (job_id, attempt, due_at)
       select job_id, 0, now() + make_interval(secs => $21) from job where $21::float8 is not null)
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
      job.startAfterS,
      job.retriedFrom,
      job.requirements.tags,
      job.step?.pipelineId ?? null,
      job.step?.name ?? null,
      job.step?.run ?? null,
      job.step?.reuseKey ?? null,
      job.expectedCostUsd,
    ],
  );
}

export async function findJob(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
): Promise<JobRow | undefined> {
  return await maybeOne<JobRow>(
    db,
    `select *, ${DERIVED} from jobs where job_id = $1 and ($2::text is null or user_id = $2)`,
    [jobId, tenantScope],
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

/** From now on the job ends `cancelled`; the worker that runs this attempt, if any, has the grace to stop. */
export async function requestCancel(
  db: Queryable,
  jobId: string,
  attempt: number,
  graceS: number,
  cancelledBy: string,
): Promise<void> {
  await execute(
    db,
    `with job as (
       update jobs set cancel_requested_at = coalesce(cancel_requested_at, now()),
              cancelled_by = coalesce(cancelled_by, $4)
       where job_id = $1 returning job_id)
     update attempts a set cancel_by = coalesce(cancel_by, now() + make_interval(secs => $3))
     from job where a.job_id = job.job_id and a.attempt = $2 and a.state = 'running'`,
    [jobId, attempt, graceS, cancelledBy],
  );
}

/**
 * The last write of a job that failed, with its last attempt's error unless there is another. False where the
 * job or that attempt is in another state: a job does not end under an attempt that goes on.
 */
export async function failJob(
  db: Queryable,
  jobId: string,
  attempt: number,
  code: ErrorCode,
  error: string | null = null,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update jobs j set status = 'failed', completed_at = now(), error_code = $3,
            error = coalesce($4, a.error),
            worker_id = a.worker_id, logs_uri = coalesce(a.logs_uri, j.logs_uri)
     from attempts a
     where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2 and a.state = 'ended'
       and j.status = any('{pending,provisioning_worker,assigned,running}')`,
    [jobId, attempt, code, error],
  );
  return changed === 1;
}

/** Progress as workers tell it, of live attempts only. */
export async function reportProgress(
  db: Queryable,
  told: { workerId: string; jobId: string; progress: number }[],
): Promise<void> {
  await execute(
    db,
    `with told as (
       select * from unnest($1::text[], $2::text[], $3::float8[]) told (job_id, worker_id, progress)),
     moved as (
       select j.job_id, told.progress from jobs j join told using (job_id, worker_id)
       where j.status = 'running' and j.progress is distinct from told.progress
       order by j.job_id for no key update of j skip locked)
     update jobs j set progress = moved.progress from moved where j.job_id = moved.job_id`,
    [
      told.map(({ jobId }) => jobId),
      told.map(({ workerId }) => workerId),
      told.map(({ progress }) => progress),
    ],
  );
}
