import type { JobType } from "../../core/jobs/job-types";
import { maybeOne, type Queryable } from "../../platform/postgres/pool";
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
  /** Of a job that places a deployment again. */
  deployment_id: string | null;
  /** Of a deploy job: what the model's server is to be asked with. */
  serving_token: string | null;
  /** From its queueing until now; null where it was handed out before. */
  waited_s: number | null;
  /** Its job is cancelled: the worker should not go on with it. */
  is_cancelled: boolean;
}

export interface Asker {
  workerId: string;
  keyId: string;
  /** Which of the worker's polls asks, where it has waited: only the latest is given a job then. */
  pollSeq: number | null;
  /** The worker's secret, if it has one: who doesn't show it can do nothing with the attempt. */
  leaseToken: string | null;
}

/**
 * Starts the attempt assigned to this worker, or finds the one that it runs already: asking twice
 * gives the same answer. The job row is taken first, then the attempt, as everywhere. A key that was
 * revoked while its poll was parked is given nothing, nor is one after which the worker asked anew while it
 * was parked: nobody may read its answer any more.
 */
export async function dispatchJob(db: Queryable, asker: Asker): Promise<Dispatch | undefined> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const found = await tryDispatch(db, asker);
    // Another poll of this worker started it while we waited for the job's lock: now it runs. Or it was
    // taken back meanwhile: now there is none.
    if (!found || found.is_running) return found;
  }
  return undefined;
}

const MAX_TRIES = 5;

/** 244 random bits. */
const NEW_TOKEN = `'forge_model_' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')`;

async function tryDispatch(
  db: Queryable,
  { workerId, keyId, pollSeq, leaseToken }: Asker,
): Promise<(Dispatch & { is_running: boolean }) | undefined> {
  return await maybeOne(
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
       where j.job_id = held.job_id and held.state = 'assigned' and j.status = 'assigned'
         and j.worker_id = $1
       returning j.job_id, j.job_type, j.timeout_s),
     started as (
       update attempts a set state = 'running', started_at = now(),
              deadline_at = now() + make_interval(secs => job.timeout_s),
              gpu_count = w.gpu_count, gpu_tokens = w.gpu_tokens,
              serving_token = case when job.job_type = 'deploy' then ${NEW_TOKEN} end,
              lease_token = $3
       from job, workers w
       where a.job_id = job.job_id and a.state = 'assigned' and a.worker_id = $1
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
