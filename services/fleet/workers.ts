import type { WorkerErrorCode, WorkerStatus } from "../../core/jobs/states";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface WorkerRow {
  worker_id: string;
  user_id: string;
  shared: boolean;
  boot_id: string | null;
  version: string | null;
  tags: string[];
  gpu_name: string;
  gpu_count: number;
  gpu_memory_gb: number;
  job_types: string[] | null;
  tenants: string[] | null;
  bound_key_id: string | null;
  ssh_host: string | null;
  ssh_port: number | null;
  ssh_user: string | null;
  ssh_key_path: string | null;
  ssh_host_key: string | null;
  provider: string | null;
  metadata: Record<string, unknown> | null;
  bootstrap_run: number;
  bootstrap_key_id: string | null;
  status: WorkerStatus;
  status_reason: string | null;
  error_code: WorkerErrorCode | null;
  draining: boolean;
  decommissioned_at: Date | null;
  heartbeat_seq: number;
  last_heartbeat_at: Date | null;
  util: number | null;
  mem_used: number | null;
  mem_total: number | null;
  jobs_handled: number;
}

export async function lockWorker(db: Queryable, workerId: string): Promise<WorkerRow | undefined> {
  return await maybeOne<WorkerRow>(
    db,
    "select * from workers where worker_id = $1 for no key update",
    [workerId],
  );
}

/** Who acts for which worker. */
export interface WorkerCall {
  workerId: string;
  userId: string;
  /** The key that the worker must be bound to; null: any of its owner's will do. */
  boundKeyId: string | null;
}

export interface Registration {
  workerId: string;
  userId: string;
  shared: boolean;
  bootId: string | null;
  version: string | null;
  tags: string[];
  gpuName: string;
  gpuCount: number;
  gpuMemoryGb: number;
  gpuTokens: string[];
  jobTypes: string[] | null;
  tenants: string[] | null;
  /** The limited key that it is bound to from now on; null leaves it as it is. */
  boundKeyId: string | null;
  /** Where the request comes from. */
  address: string;
  /** For how long it is given a job without asking, in seconds. */
  offerS: number;
}

/** Until when a worker is given jobs that does not ask, by the parameter that says for how many seconds; null: not. */
const OFFERED_FOR = (seconds: string): string =>
  `case when ${seconds}::float8 > 0 then now() + make_interval(secs => ${seconds}::float8) end`;

/**
 * Registers or registers again, under one owner. Registering counts as being heard and as asking, ends `error`,
 * and as another boot ends draining too. What is being set up stays so until its last step.
 */
export async function upsertWorker(
  db: Queryable,
  given: Registration,
): Promise<{ status: WorkerStatus } | undefined> {
  return await maybeOne<{ status: WorkerStatus }>(
    db,
    `insert into workers as w (worker_id, user_id, shared, boot_id, version, tags, gpu_name,
                               gpu_count, gpu_memory_gb, gpu_tokens, job_types, tenants, bound_key_id,
                               address, status, heartbeat_seq, last_heartbeat_at, available_until)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'idle', 1, now(),
             ${OFFERED_FOR("$15")})
     on conflict (worker_id) do update set
       shared = excluded.shared, boot_id = excluded.boot_id, version = excluded.version,
       tags = excluded.tags, gpu_name = excluded.gpu_name, gpu_count = excluded.gpu_count,
       gpu_memory_gb = excluded.gpu_memory_gb, gpu_tokens = excluded.gpu_tokens,
       job_types = excluded.job_types, tenants = excluded.tenants, address = excluded.address,
       bound_key_id = case when w.decommissioned_at is null
                           then coalesce(excluded.bound_key_id, w.bound_key_id)
                           else excluded.bound_key_id end,
       heartbeat_seq = w.heartbeat_seq + 1, poll_seq = w.poll_seq + 1, last_heartbeat_at = now(),
       available_until = greatest(case when w.boot_id = excluded.boot_id then w.available_until end,
                                  excluded.available_until),
       draining = w.draining and w.boot_id is not distinct from excluded.boot_id
                  and excluded.boot_id is not null,
       decommissioned_at = null, status_reason = null, error_code = null,
       strikes = case when w.error_code is null then w.strikes else 0 end,
       strikes_since = case when w.error_code is null then w.strikes_since end,
       struck_by = case when w.error_code is null then w.struck_by else '{}' end,
       status = case when w.status = 'bootstrapping' then w.status
                     when exists (select from attempts a where a.worker_id = w.worker_id
                                  and a.state in ('assigned', 'running')) then 'busy'
                     else 'idle' end
     where w.user_id = excluded.user_id
     returning status`,
    [
      given.workerId,
      given.userId,
      given.shared,
      given.bootId,
      given.version,
      given.tags,
      given.gpuName,
      given.gpuCount,
      given.gpuMemoryGb,
      given.gpuTokens,
      given.jobTypes,
      given.tenants,
      given.boundKeyId,
      given.address,
      given.offerS,
    ],
  );
}

/** After a poll has ended, its worker may still be given a job for so long: it will ask again soon. */
export const OFFER_S = 30;

export interface Offer {
  status: WorkerStatus;
  available_until: string;
  /** Which of the worker's polls is the latest. */
  poll_seq: number;
  draining: boolean;
  decommissioned: boolean;
  /** An attempt is assigned to it, or it runs one. */
  holds: boolean;
  /** Whether anything queued could run on it, where that was asked. */
  isWanted?: boolean;
}

/** Of a worker `w`. */
export const OFFER = `w.status, w.available_until::text, w.poll_seq, w.draining,
  w.decommissioned_at is not null as decommissioned,
  exists (select from attempts held
          where held.worker_id = w.worker_id and held.state in ('assigned', 'running')) as holds`;

/**
 * The worker asks for work, waits for so long and, whenever it is idle, may be given some. One that had
 * not answered is well again by asking.
 */
export async function offerWorker(
  db: Queryable,
  { workerId, userId, boundKeyId, address, waitS }: WorkerCall & { address: string; waitS: number },
): Promise<Offer | undefined> {
  return await maybeOne<Offer>(
    db,
    `update workers w set available_until = now() + make_interval(secs => $3), poll_seq = poll_seq + 1,
            status = case when ${IS_WELL_AGAIN} then 'idle' else status end,
            status_reason = case when ${IS_WELL_AGAIN} then null else status_reason end,
            error_code = case when ${IS_WELL_AGAIN} then null else error_code end, address = $5
     where worker_id = $1 and user_id = $2 and ($4::text is null or bound_key_id = $4)
     returning ${OFFER}`,
    [workerId, userId, waitS + OFFER_S, boundKeyId, address],
  );
}

const IS_WELL_AGAIN = "status = 'error' and error_code = 'unresponsive'";

/** How a parked worker stands, when something woke it and it has no job. */
export async function findOffer(db: Queryable, workerId: string): Promise<Offer | undefined> {
  return await maybeOne<Offer>(db, `select ${OFFER} from workers w where worker_id = $1`, [
    workerId,
  ]);
}

/** The worker hung up: nothing for it until it asks again. If it has done that already, this is void. */
export async function withdrawOffer(
  db: Queryable,
  workerId: string,
  availableUntil: string,
): Promise<void> {
  await execute(
    db,
    `update workers set available_until = null
     where worker_id = $1 and available_until = $2::timestamptz`,
    [workerId, availableUntil],
  );
}

/** Of one that is free again: what it said of itself while it was busy counts from now on. */
export const FREED = `case when status <> 'busy' then status
  when error_code is not null then 'error' else 'idle' end`;

/**
 * What it held has ended: free again, and given no job before it asks, or for `offerS` seconds where its result
 * counts as asking. After a success what failed there before is forgotten.
 */
export async function releaseWorker(
  db: Queryable,
  workerId: string,
  { succeeded, offerS = 0 }: { succeeded: boolean; offerS?: number },
): Promise<void> {
  await execute(
    db,
    `update workers set status = ${FREED}, available_until = ${OFFERED_FOR("$3")},
            jobs_handled = jobs_handled + 1,
            succeeded_at = case when $2 then now() else succeeded_at end,
            strikes = case when $2 then 0 else strikes end,
            struck_by = case when $2 then '{}' else struck_by end,
            strikes_since = case when $2 then null else strikes_since end
     where worker_id = $1`,
    [workerId, succeeded, offerS],
  );
}

/** An assignment was taken back before it was fetched: the worker's offer stands. */
export async function releaseUnfetched(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    `update workers set status = ${FREED} where worker_id = $1 and status = 'busy'`,
    [workerId],
  );
}

/** Takes a worker out of service until it registers again (or asks, if it only did not answer). */
export async function benchWorker(
  db: Queryable,
  workerId: string,
  code: WorkerErrorCode,
  reason: string,
): Promise<void> {
  await execute(
    db,
    `update workers set status = 'error', error_code = $2, status_reason = $3, available_until = null
     where worker_id = $1 and status in ('idle', 'busy')`,
    [workerId, code, reason],
  );
}

/** From `error` back to work, and out of draining, by an admin's word; false for one never heard. */
export async function resetWorker(db: Queryable, workerId: string): Promise<boolean> {
  const changed = await execute(
    db,
    `update workers set draining = false, strikes = 0, strikes_since = null, struck_by = '{}',
            status = case when status = 'error' then 'idle' else status end,
            error_code = null,
            status_reason = case when status = 'error' then null else status_reason end
     where worker_id = $1 and heartbeat_seq > 0
       and error_code is distinct from 'bootstrap_failed'`,
    [workerId],
  );
  return changed === 1;
}

/** Finishes what it has and takes no other. */
export async function drainWorker(db: Queryable, workerId: string): Promise<void> {
  await execute(db, "update workers set draining = true where worker_id = $1", [workerId]);
}

/** Takes jobs again, if it is there still. */
export async function undrainWorker(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    "update workers set draining = false where worker_id = $1 and decommissioned_at is null",
    [workerId],
  );
}

/** Out of the fleet for good, unless it registers anew. Call when it holds nothing any more. */
export async function decommissionWorker(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    `update workers set decommissioned_at = now(), draining = true, status = 'dead', error_code = null,
            status_reason = 'decommissioned', available_until = null where worker_id = $1`,
    [workerId],
  );
}
