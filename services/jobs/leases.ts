import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import type { WorkerCall } from "../fleet/workers";
import type { Dispatch } from "./dispatch";

/** A running attempt in the hands of its worker, with what its job names. */
export interface Lease extends Omit<Dispatch, "timeout_s" | "is_cancelled" | "serving_token"> {
  checkpoint: Checkpoint | null;
  /** Where its log is; null as long as none is stored. */
  logs_uri: string | null;
  /** Its job is to end: the worker should stop. */
  cancelled: boolean;
}

/** A file that an attempt leaves so that a later one need not begin anew. */
export interface Checkpoint {
  attempt: number;
  name: string;
  size_bytes: number;
  sha256: string;
}

export interface LeaseClaim extends WorkerCall {
  jobId: string;
  attempt: number;
  /** As the request shows it. */
  token: string | null;
}

/** What is known of a worker's claim on an attempt. */
export interface ClaimedLease {
  /** Null: the caller may not act for this worker. */
  worker_id: string | null;
  /** The job is the tenant's, or the worker had it once. */
  knows_job: boolean;
  /** Null: the attempt is not running there, or another token is its own. */
  lease: Lease | null;
}

export async function findLease(db: Queryable, claim: LeaseClaim): Promise<ClaimedLease> {
  const row = await maybeOne<ClaimedLease>(
    db,
    `select (select worker_id from workers where worker_id = $2 and user_id = $4
               and ($5::text is null or bound_key_id = $5)) as worker_id,
            exists (select from jobs where job_id = $1 and user_id = $4)
              or exists (select from attempts where job_id = $1 and worker_id = $2
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

/** Notes where the log of an attempt is, which is its job's while it runs. */
export async function noteLog(
  db: Queryable,
  { job_id: jobId, attempt }: Pick<Lease, "job_id" | "attempt">,
  uri: string,
): Promise<void> {
  // The job first: the attempt says that both are done.
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

/** Notes an attempt's newest checkpoint; false when the attempt has ended meanwhile. */
export async function noteCheckpoint(
  db: Queryable,
  jobId: string,
  checkpoint: Checkpoint,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update attempts set checkpoint = $3
     where job_id = $1 and attempt = $2 and state = 'running'`,
    [jobId, checkpoint.attempt, checkpoint],
  );
  return changed === 1;
}

/** The newest checkpoint that an attempt before this one has left. */
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
