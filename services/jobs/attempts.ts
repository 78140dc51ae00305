import type { TenantScope } from "../../core/accounts/permissions";
import type { ReportedUsage } from "../../core/billing/usage";
import type { AttemptEnd, ErrorCode, JobStatus, Outcome } from "../../core/jobs/states";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { FREED } from "../fleet/workers";
import { ALL_ATTEMPTS, ALL_JOBS } from "./all-jobs";

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
  /** The usage that the worker reported. */
  usage: ReportedUsage | null;
  /**
   * The hours from dispatch to end, multiplied by the worker's number of GPUs. Null while the
   * attempt is live, and if it never started.
   */
  gpu_hours_measured: number | null;
  artifacts_uri: string | null;
  logs_uri: string | null;
  result_digest: string | null;
  /** Consecutive heartbeats in which the worker reports that it runs no job. */
  denials: number;
  /**
   * The secret that the worker must send with each request for this attempt. Null if the worker's
   * poll sent none.
   */
  lease_token: string | null;
}

/**
 * An attempt's end, in the form that the job's workflow receives. Undefined while the attempt is
 * live.
 */
export function attemptEndOf(
  row: Pick<AttemptRow, "outcome" | "retryable" | "error_code">,
): AttemptEnd | undefined {
  const { outcome, retryable, error_code: errorCode } = row;
  if (outcome === null) return undefined;
  return { outcome, retryable, ...(errorCode === null ? {} : { errorCode }) };
}

/** What a workflow reads while it waits for the end of the attempt or of the whole job. */
export interface AttemptState extends Pick<AttemptRow, "outcome" | "retryable" | "error_code"> {
  job_status: JobStatus;
  job_error_code: ErrorCode | null;
  /**
   * Whether the attempt has a row. It has none if, for example, the job ended before this attempt
   * was inserted.
   */
  attempt_exists: boolean;
}

export async function findAttemptState(db: Queryable, jobId: string, attempt: number) {
  return await maybeOne<AttemptState>(
    db,
    `select a.outcome, a.retryable, a.error_code, j.status as job_status,
            j.error_code as job_error_code, a.job_id is not null as attempt_exists
     from ${ALL_JOBS} j left join ${ALL_ATTEMPTS} a on a.job_id = j.job_id and a.attempt = $2
     where j.job_id = $1`,
    [jobId, attempt],
  );
}

export async function listAttempts(db: Queryable, jobId: string, tenantScope: TenantScope) {
  return await all<AttemptRow>(
    db,
    `select a.* from ${ALL_ATTEMPTS} a join ${ALL_JOBS} j using (job_id)
     where job_id = $1 and ($2::text is null or j.user_id = $2) order by attempt`,
    [jobId, tenantScope],
  );
}

export async function findAttempt(db: Queryable, jobId: string, attempt: number) {
  return await maybeOne<AttemptRow>(
    db,
    `select * from ${ALL_ATTEMPTS} a where job_id = $1 and attempt = $2`,
    [jobId, attempt],
  );
}

/**
 * Of the job's attempts that were dispatched to this worker, locks the attempt with the number
 * `attempt`, or the latest attempt if `attempt` is null. The caller holds the job's lock.
 */
export async function lockAttemptOf(
  db: Queryable,
  jobId: string,
  workerId: string,
  attempt: number | null,
) {
  return await lockLast(
    db,
    `job_id = $1 and worker_id = $2 and started_at is not null and ($3::int is null or attempt = $3)`,
    [jobId, workerId, attempt],
  );
}

/**
 * Locks and returns the last attempt for which the condition is true. An attempt of an archived job
 * is returned without a lock (see `lockJob`).
 */
async function lockLast(db: Queryable, condition: string, values: unknown[]) {
  const last = (table: string): string =>
    `select * from ${table} where ${condition} order by attempt desc limit 1`;
  const locked = await maybeOne<AttemptRow>(db, `${last("attempts")} for no key update`, values);
  return locked ?? (await maybeOne<AttemptRow>(db, last("archived_attempts"), values));
}

const HELD = "select * from attempts where worker_id = $1 and state in ('assigned', 'running')";

/** The assigned or running attempt of a worker. */
export async function findHeldAttempt(db: Queryable, workerId: string) {
  return await maybeOne<AttemptRow>(db, HELD, [workerId]);
}

/** Locks the assigned or running attempt of a worker. The caller holds the job's lock. */
export async function lockHeldAttempt(db: Queryable, workerId: string) {
  return await maybeOne<AttemptRow>(db, `${HELD} for no key update`, [workerId]);
}

/** Locks the last attempt of a job. The caller holds the job's lock. */
export async function lockLatestAttempt(db: Queryable, jobId: string) {
  return await lockLast(db, "job_id = $1", [jobId]);
}

/**
 * Queues attempt number `attempt` of an unfinished job that is not being cancelled, if the previous
 * attempt has ended and may be retried. `isRetryable` in core/jobs/retry.ts has the same rule for
 * retries: change both. Idempotent.
 */
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
                     and state = 'ended' and (outcome = 'worker_lost' or outcome = 'failed' and retryable))
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
  /** Seconds in which only the process that ended the attempt may deliver the end to Temporal. */
  leaseS: number;
}

/**
 * SQL: the time at which an attempt ends, never before its start. now() can be before the start:
 * the transaction that ends the attempt may have begun before the one that dispatched it, or the
 * database's clock was set back.
 */
const END = "greatest(now(), queued_at, assigned_at, started_at)";

/**
 * SQL: GPU hours of an attempt that ends now; null if no worker ran it. Attempts that an earlier
 * release dispatched have no `gpu_count`. For these, the worker's GPU count is used.
 */
const GPU_HOURS = `round((extract(epoch from ${END} - started_at) / 3600)::numeric * coalesce(gpu_count,
  (select w.gpu_count from workers w where w.worker_id = attempts.worker_id)), 9)`;

/**
 * Ends a live attempt and adds an outbox entry for its workflow. Returns false if it had already
 * ended.
 */
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

/**
 * Withdraws an assignment that the worker never fetched. The attempt is queued again under the same
 * number.
 */
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
