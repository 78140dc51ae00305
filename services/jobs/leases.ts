import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import type { WorkerCall } from "../fleet/workers";
import { ALL_ATTEMPTS, ALL_JOBS } from "./all-jobs";
import type { Dispatch } from "./dispatch";

/** A running attempt that a worker holds, with the fields of its job. */
export interface Lease extends Omit<Dispatch, "timeout_s" | "is_cancelled" | "serving_token"> {
  checkpoint: Checkpoint | null;
  /** Where the attempt's log is; null if no log is stored yet. */
  logs_uri: string | null;
  /** The job is being cancelled: the worker should stop. */
  cancelled: boolean;
}

/** A file from which a later attempt can resume. */
export interface Checkpoint {
  attempt: number;
  name: string;
  size_bytes: number;
  sha256: string;
}

export interface LeaseClaim extends WorkerCall {
  jobId: string;
  attempt: number;
  /** The lease token that the request sent. */
  token: string | null;
}

export interface ClaimedLease {
  /** Null if the request is not allowed to act for this worker. */
  worker_id: string | null;
  /** Whether the job belongs to the tenant, or the worker has run an attempt of the job. */
  knows_job: boolean;
  /**
   * Null if the attempt does not run on this worker, or if the request's lease token is not that of
   * the attempt.
   */
  lease: Lease | null;
}

export async function findLease(db: Queryable, claim: LeaseClaim): Promise<ClaimedLease> {
  const row = await maybeOne<ClaimedLease>(
    db,
    `select (select worker_id from workers where worker_id = $2 and user_id = $4
               and ($5::text is null or bound_key_id = $5)) as worker_id,
            exists (select from ${ALL_JOBS} j where job_id = $1 and user_id = $4)
              or exists (select from ${ALL_ATTEMPTS} a where job_id = $1 and worker_id = $2
                         and started_at is not null) as knows_job,
            (select jsonb_build_object(
               'job_id', j.job_id, 'user_id', j.user_id, 'attempt', a.attempt,
               'job_type', j.job_type, 'payload', j.payload, 'params', j.params,
               'output_ids', a.output_ids, 'deployment_id', j.deployment_id, 'checkpoint', a.checkpoint, 'logs_uri', a.logs_uri,
               'cancelled', a.cancel_by is not null)
             from attempts a join jobs j using (job_id)
             where a.job_id = $1 and a.attempt = $3 and a.worker_id = $2 and a.state = 'running'
               and (a.lease_token is null or a.lease_token = $6)) as lease`,
    [claim.jobId, claim.workerId, claim.attempt, claim.userId, claim.boundKeyId, claim.token],
  );
  if (!row) throw new Error("a select without from returned no row");
  return row;
}

/** Records where an attempt's log is stored, on the attempt and on its running job. */
export async function recordLog(
  db: Queryable,
  { job_id: jobId, attempt }: Pick<Lease, "job_id" | "attempt">,
  uri: string,
): Promise<void> {
  // Two statements without a transaction. Update the attempt last, because the caller skips this
  // function once the attempt has a `logs_uri`: if the second statement fails, the next call
  // repeats both.
  await execute(
    db,
    `update jobs j set logs_uri = $3 from attempts a
     where j.job_id = $1 and a.job_id = j.job_id and a.attempt = $2 and a.state = 'running'
       and j.status = 'running'`,
    [jobId, attempt, uri],
  );
  await execute(
    db,
    `update attempts set logs_uri = $3 where job_id = $1 and attempt = $2 and state = 'running'`,
    [jobId, attempt, uri],
  );
}

/**
 * Records an attempt's newest checkpoint.
 *
 * @param lease the attempt's lease as this request read it before the upload.
 * @returns false if the attempt has ended, or if another request has recorded a checkpoint since
 *   this request read the lease. The attempt then keeps the other request's checkpoint.
 */
export async function recordCheckpoint(
  db: Queryable,
  lease: Pick<Lease, "job_id" | "attempt" | "checkpoint">,
  checkpoint: Checkpoint,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update attempts set checkpoint = $3
     where job_id = $1 and attempt = $2 and state = 'running'
       and checkpoint is not distinct from $4::jsonb`,
    [lease.job_id, lease.attempt, checkpoint, lease.checkpoint],
  );
  return changed === 1;
}

/** The newest checkpoint of the job's attempts before `attempt`. */
export async function findCheckpointBefore(
  db: Queryable,
  jobId: string,
  attempt: number,
): Promise<Checkpoint | undefined> {
  const row = await maybeOne<{ checkpoint: Checkpoint }>(
    db,
    `select checkpoint from attempts
     where job_id = $1 and attempt < $2 and checkpoint is not null
     order by attempt desc limit 1`,
    [jobId, attempt],
  );
  return row?.checkpoint;
}
