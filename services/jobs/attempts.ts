import type { TenantScope } from "../../core/accounts/principal";
import type { ReportedUsage } from "../../core/billing/usage";
import type { AttemptEnd, ErrorCode, JobStatus, Outcome } from "../../core/jobs/states";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { FREED } from "../fleet/workers";

export interface AttemptRow {
  job_id: string;
  attempt: number;
  state: "queued" | "assigned" | "running" | "ended";
  worker_id: string | null;
  output_ids: Record<string, string>;
  queued_at: Date;
  assigned_at: Date | null;
  started_at: Date | null;
  deadline_at: Date | null;
  cancel_by: Date | null;
  ended_at: Date | null;
  outcome: Outcome | null;
  retryable: boolean;
  error: string | null;
  error_code: ErrorCode | null;
  result: Record<string, unknown> | null;
  metrics: Record<string, unknown> | null;
  /** As its worker told it. */
  usage: ReportedUsage | null;
  /** From its hand-out to its end, times its worker's GPUs; null while it is live, or never began. */
  gpu_hours_measured: number | null;
  artifacts_uri: string | null;
  logs_uri: string | null;
  result_digest: string | null;
  /** Heartbeats in a row by which its worker says that it runs no job. */
  denials: number;
  /** What its worker shows, where it asked for the job with one. */
  lease_token: string | null;
}

/** How an attempt ended, as its workflow needs to know; undefined while it is live. */
export function attemptEndOf(
  row: Pick<AttemptRow, "outcome" | "retryable" | "error_code">,
): AttemptEnd | undefined {
  if (row.outcome === null) return undefined;
  return {
    outcome: row.outcome,
    retryable: row.retryable,
    ...(row.error_code === null ? {} : { errorCode: row.error_code }),
  };
}

/** What an attempt's workflow waits for: the attempt's end, or the whole job's. */
export interface AttemptState extends Pick<AttemptRow, "outcome" | "retryable" | "error_code"> {
  job_status: JobStatus;
  job_error_code: ErrorCode | null;
  /** False: no such attempt, as when its job ended before it was queued. */
  is_there: boolean;
}

export async function findAttemptState(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<AttemptState | undefined> {
  return await maybeOne<AttemptState>(
    db,
    `select a.outcome, a.retryable, a.error_code, j.status as job_status,
            j.error_code as job_error_code, a.job_id is not null as is_there
     from jobs j left join attempts a on a.job_id = j.job_id and a.attempt = $2
     where j.job_id = $1`,
    [jobId, attempt],
  );
}

export async function listAttempts(
  db: Queryable,
  jobId: string,
  tenantScope: TenantScope,
): Promise<AttemptRow[]> {
  return await all<AttemptRow>(
    db,
    `select a.* from attempts a join jobs j using (job_id)
     where job_id = $1 and ($2::text is null or j.user_id = $2) order by attempt`,
    [jobId, tenantScope],
  );
}

export async function findAttempt(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<AttemptRow | undefined> {
  return await maybeOne<AttemptRow>(
    db,
    "select * from attempts where job_id = $1 and attempt = $2",
    [jobId, attempt],
  );
}

/** The attempt of a job last handed to this worker, locked. Call with the job's lock held. */
export async function lockAttemptOf(
  db: Queryable,
  jobId: string,
  workerId: string,
  attempt: number | null,
): Promise<AttemptRow | undefined> {
  return await maybeOne<AttemptRow>(
    db,
    `select * from attempts
     where job_id = $1 and worker_id = $2 and started_at is not null
       and ($3::int is null or attempt = $3)
     order by attempt desc limit 1 for no key update`,
    [jobId, workerId, attempt],
  );
}

/** The attempt that a worker holds, assigned or running. */
export async function findHeldAttempt(
  db: Queryable,
  workerId: string,
): Promise<AttemptRow | undefined> {
  return await maybeOne<AttemptRow>(
    db,
    "select * from attempts where worker_id = $1 and state in ('assigned', 'running')",
    [workerId],
  );
}

/** The same, locked. Call with its job's lock held. */
export async function lockHeldAttempt(
  db: Queryable,
  workerId: string,
): Promise<AttemptRow | undefined> {
  return await maybeOne<AttemptRow>(
    db,
    `select * from attempts where worker_id = $1 and state in ('assigned', 'running')
     for no key update`,
    [workerId],
  );
}

/** The last attempt of a job, locked. Call with the job's lock held. */
export async function lockLatestAttempt(
  db: Queryable,
  jobId: string,
): Promise<AttemptRow | undefined> {
  return await maybeOne<AttemptRow>(
    db,
    "select * from attempts where job_id = $1 order by attempt desc limit 1 for no key update",
    [jobId],
  );
}

/** Another attempt of a job that goes on, after one that came to nothing. Doing it twice changes nothing. */
export async function queueAttempt(
  db: Queryable,
  jobId: string,
  attempt: number,
  outputIds: Record<string, string>,
): Promise<boolean> {
  const changed = await execute(
    db,
    `with job as (
       update jobs set status = 'pending', worker_id = null, progress = null
       where job_id = $1 and status = any('{pending,assigned,running}')
         and cancel_requested_at is null
         and not exists (select from attempts where job_id = $1 and attempt >= $2)
         and exists (select from attempts where job_id = $1 and attempt = $2 - 1
                     and state = 'ended' and outcome <> 'completed')
       returning job_id)
     insert into attempts (job_id, attempt, shape, priority, output_ids)
     select job_id, $2, last.shape, last.priority, $3
     from job join attempts last using (job_id) where last.attempt = $2 - 1
     on conflict (job_id, attempt) do nothing`,
    [jobId, attempt, outputIds],
  );
  return changed === 1;
}

export interface AttemptEnding {
  jobId: string;
  attempt: number;
  outcome: Outcome;
  retryable?: boolean;
  error?: string | null;
  errorCode?: ErrorCode | null;
  result?: Record<string, unknown> | null;
  metrics?: Record<string, unknown> | null;
  usage?: ReportedUsage | null;
  artifactsUri?: string | null;
  logsUri?: string | null;
  resultDigest?: string | null;
  /** For how long the ending process alone may tell Temporal, in seconds. */
  leaseS: number;
}

/**
 * When an attempt ends: not before it began, though the transaction that ends it may have begun earlier than the
 * one that handed it out, and the clock may have stepped back.
 */
const END = "greatest(now(), queued_at, assigned_at, started_at)";

/** Of an attempt that ends now; null of one that no worker had. One handed out before GPUs were noted has its worker's. */
const GPU_HOURS = `round((extract(epoch from ${END} - started_at) / 3600)::numeric * coalesce(gpu_count,
  (select w.gpu_count from workers w where w.worker_id = attempts.worker_id)), 9)`;

/** Ends a live attempt and owes its outcome to the workflow; false when it had ended already. */
export async function writeAttemptEnd(db: Queryable, end: AttemptEnding): Promise<boolean> {
  const changed = await execute(
    db,
    `with ended as (
       update attempts set state = 'ended', ended_at = ${END}, outcome = $3, retryable = $4,
              error = $5, error_code = $6, result = $7, metrics = $8, usage = $9,
              artifacts_uri = $10, logs_uri = coalesce($11, logs_uri), result_digest = $12,
              gpu_hours_measured = ${GPU_HOURS}
       where job_id = $1 and attempt = $2 and state <> 'ended'
       returning job_id, attempt)
     insert into outbox (job_id, attempt, due_at)
     select job_id, attempt, now() + make_interval(secs => $13) from ended`,
    [
      end.jobId,
      end.attempt,
      end.outcome,
      end.retryable ?? false,
      end.error ?? null,
      end.errorCode ?? null,
      end.result ?? null,
      end.metrics ?? null,
      end.usage ?? null,
      end.artifactsUri ?? null,
      end.logsUri ?? null,
      end.resultDigest ?? null,
      end.leaseS,
    ],
  );
  return changed === 1;
}

/** Takes back an assignment that was never fetched; the attempt keeps its number, uncounted. */
export async function unassign(db: Queryable, jobId: string, workerId: string): Promise<boolean> {
  const row = await maybeOne(
    db,
    `with job as (
       update jobs set status = 'pending', worker_id = null
       where job_id = $1 and status = 'assigned' and worker_id = $2 returning job_id),
     returned as (
       update attempts a set state = 'queued', worker_id = null, assigned_at = null, shared_for = null
       from job where a.job_id = job.job_id and a.state = 'assigned' and a.worker_id = $2
       returning a.job_id),
     freed as (
       update workers set status = ${FREED}, available_until = null
       where worker_id = $2 and status = 'busy' and exists (select from returned))
     select job_id from returned`,
    [jobId, workerId],
  );
  return row !== undefined;
}
