import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { JobType } from "../../core/jobs/job-types";
import type { Metrics } from "../../platform/metrics/metrics";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
import { rowFilter } from "../../platform/postgres/row-filter";
import { IS_LIVE } from "../accounts/keys";

export interface Dispatch {
  job_id: string;
  user_id: string;
  attempt: number;
  job_type: JobType;
  payload: Record<string, unknown>;
  params: Record<string, unknown>;
  timeout_s: number;
  output_ids: Record<string, string>;
  /** The deployment for which the job starts another server; null for all other jobs. */
  deployment_id: string | null;
  /** For a deploy job: the bearer token that its model server must require. */
  serving_token: string | null;
  /** Seconds in the queue; null if an earlier poll already dispatched the attempt. */
  waited_s: number | null;
  /** The job is cancelled: the worker should stop. */
  is_cancelled: boolean;
}

/** Builds the Dispatch of an attempt that has just started. Leaves out other columns of `row`. */
export const toDispatch = (row: Omit<Dispatch, "is_cancelled">): Dispatch => ({
  job_id: row.job_id,
  user_id: row.user_id,
  attempt: row.attempt,
  job_type: row.job_type,
  payload: row.payload,
  params: row.params,
  timeout_s: row.timeout_s,
  output_ids: row.output_ids,
  deployment_id: row.deployment_id,
  serving_token: row.serving_token,
  waited_s: row.waited_s,
  is_cancelled: false,
});

/**
 * Records how long an attempt was queued before it started. Does nothing if an earlier poll has
 * already started the attempt.
 */
export function observeDispatch(metrics: Metrics, { job_type, waited_s }: Dispatch): void {
  if (waited_s !== null) metrics.dispatchSeconds.observe({ job_type }, waited_s);
}

export interface PollingWorker {
  workerId: string;
  keyId: string;
  /**
   * The sequence number of a poll that has waited; null for a new poll. A poll that has waited gets
   * a job only if the worker has sent no later poll.
   */
  pollSeq: number | null;
  /** The worker's secret, if it sent one. Later requests for the attempt must send it too. */
  leaseToken: string | null;
}

/**
 * Starts the attempt assigned to this worker, or returns the attempt that the worker already runs.
 * Idempotent. Locks the job row first, then the attempt. Returns undefined in these cases:
 * - The worker holds no attempt.
 * - The key was revoked while the poll waited.
 * - The running attempt has another lease token.
 * - The poll has waited, and the worker has sent a newer poll: the worker may no longer read the
 *   response to the older poll.
 * - The attempt changed during each of MAX_TRIES tries.
 */
export async function dispatchJob(
  db: Queryable,
  poll: PollingWorker,
): Promise<Dispatch | undefined> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const found = await tryDispatch(db, poll);
    // `is_running` is false if the attempt changed while this call waited for the job's lock:
    // another poll of this worker started the attempt, or the assignment was withdrawn. The next
    // try finds out which.
    if (!found || found.is_running) return found;
  }
  return undefined;
}

const MAX_TRIES = 5;

/** SQL: a new serving token. Its two random UUIDs have 244 random bits. */
const NEW_TOKEN = `'forge_model_' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')`;

/** SQL: the values of an attempt's columns when it starts. `j` is its job, `w` its worker. */
export const STARTED = {
  started_at: "now()",
  deadline_at: "now() + make_interval(secs => j.timeout_s)",
  gpu_count: "w.gpu_count",
  gpu_tokens: "w.gpu_tokens",
  serving_token: `case when j.job_type = '${DEPLOYMENT_TYPE}' then ${NEW_TOKEN} end`,
};

async function tryDispatch(db: Queryable, { workerId, keyId, pollSeq, leaseToken }: PollingWorker) {
  return await maybeOne<Dispatch & { is_running: boolean }>(
    db,
    `with held as (
       select job_id, attempt, state from attempts
       where worker_id = $1 and state in ('assigned', 'running')
         and (lease_token is null or lease_token = $3)
         and exists (select from api_keys where key_id = $2 and ${IS_LIVE})
         and ($4::bigint is null
              or exists (select from workers where worker_id = $1 and poll_seq = $4))),
     job as (
       update jobs j set status = 'running', attempts = held.attempt, worker_id = $1,
              started_at = coalesce(j.started_at, now())
       from held
       where j.job_id = held.job_id and held.state = 'assigned'
         and ${rowFilter("j.status = 'assigned'")} and j.worker_id = $1
       returning j.job_id, j.job_type, j.timeout_s),
     started as (
       update attempts a set state = 'running', lease_token = $3,
              ${Object.entries(STARTED)
                .map(([column, value]) => `${column} = ${value}`)
                .join(", ")}
       from job j, workers w
       where a.job_id = j.job_id and a.state = 'assigned' and a.worker_id = $1
         and w.worker_id = $1
       returning a.job_id, a.serving_token,
                 greatest(0, extract(epoch from a.started_at - a.queued_at))::float8 as waited_s)
     select j.job_id, j.user_id, held.attempt, j.job_type, j.payload, j.params, j.timeout_s, a.output_ids,
            j.deployment_id,
            coalesce(a.serving_token, started.serving_token) as serving_token,
            started.waited_s, a.cancel_by is not null as is_cancelled,
            held.state = 'running' or started.job_id is not null as is_running
     from held join jobs j using (job_id) join attempts a using (job_id, attempt)
     left join started on started.job_id = held.job_id`,
    [workerId, keyId, leaseToken, pollSeq],
  );
}
