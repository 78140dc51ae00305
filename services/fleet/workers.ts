import type { WorkerErrorCode, WorkerStatus } from "../../core/jobs/states";
import { execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { HELD_ATTEMPT } from "./eligibility-sql";

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

export async function lockWorker(db: Queryable, workerId: string) {
  return await maybeOne<WorkerRow>(
    db,
    "select * from workers where worker_id = $1 for no key update",
    [workerId],
  );
}

/** The worker that a request acts for, with the request's owner and key. */
export interface WorkerCall {
  workerId: string;
  userId: string;
  /** The key that the worker must be bound to; null allows any key of its owner. */
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
  /**
   * The id of the caller's key if the key has a worker limit: the worker is then bound to this key.
   * If null, a decommissioned worker becomes unbound, and any other worker keeps its key.
   */
  boundKeyId: string | null;
  /** IP address of the request. */
  address: string;
  /** For how many seconds jobs may be assigned to the worker without a poll. */
  offerS: number;
}

/** SQL: the time until which jobs may be assigned without a poll; null for 0 seconds. */
const OFFERED_FOR = (seconds: string): string =>
  `case when ${seconds}::float8 > 0 then now() + make_interval(secs => ${seconds}::float8) end`;

/**
 * Registers a worker, or registers it again under the same owner. Counts as a heartbeat and as a
 * poll. Ends the status `error`, and ends draining if the boot id has changed. A worker that is
 * being set up stays `bootstrapping` until its bootstrap has ended. Returns undefined if another
 * owner has this worker id.
 */
export async function upsertWorker(db: Queryable, given: Registration) {
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
                     when exists (${HELD_ATTEMPT}) then 'busy'
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

/**
 * For this many seconds after a poll has ended, a job may still be assigned: the worker will poll
 * again soon.
 */
export const OFFER_S = 30;

/** Whether and until when a worker accepts jobs. */
export interface Offer {
  status: WorkerStatus;
  available_until: string;
  /** The sequence number of the worker's latest poll. */
  poll_seq: number;
  draining: boolean;
  decommissioned: boolean;
  /** An attempt is assigned to the worker, or the worker runs one. */
  holds: boolean;
  /**
   * The requirement groups of queued jobs that the worker could run; null: unknown, because the
   * queue has too many groups. Only `findOfferAndFit` sets this.
   */
  wanted?: string[] | null;
}

/** SQL: the offer of a worker `w`. */
export const OFFER = `w.status, w.available_until::text, w.poll_seq, w.draining,
  w.decommissioned_at is not null as decommissioned,
  exists (${HELD_ATTEMPT}) as holds`;

/**
 * Records a poll: for the next `waitS` + OFFER_S seconds, jobs may be assigned to the worker while
 * it is idle. An `unresponsive` worker returns to service by polling.
 */
export async function offerWorker(
  db: Queryable,
  { workerId, userId, boundKeyId, address, waitS }: WorkerCall & { address: string; waitS: number },
) {
  return await maybeOne<Offer>(
    db,
    `update workers w set available_until = now() + make_interval(secs => $3), poll_seq = poll_seq + 1,
            status = case when ${RECOVERS} then 'idle' else status end,
            status_reason = case when ${RECOVERS} then null else status_reason end,
            error_code = case when ${RECOVERS} then null else error_code end, address = $5
     where worker_id = $1 and user_id = $2 and ($4::text is null or bound_key_id = $4)
     returning ${OFFER}`,
    [workerId, userId, waitS + OFFER_S, boundKeyId, address],
  );
}

const RECOVERS = "status = 'error' and error_code = 'unresponsive'";

export async function findOffer(db: Queryable, workerId: string) {
  return await maybeOne<Offer>(db, `select ${OFFER} from workers w where worker_id = $1`, [
    workerId,
  ]);
}

/**
 * Call when the client of a poll has disconnected: the worker is assigned no job until its next
 * poll. Does nothing if the next poll has already arrived: that poll has changed `available_until`.
 */
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

/**
 * SQL: the status of a worker that is no longer busy: `error` if it reported an error while it was
 * busy.
 */
export const FREED = `case when status <> 'busy' then status
  when error_code is not null then 'error' else 'idle' end`;

/**
 * Frees a worker whose attempt has ended. If `offerS` is not 0, a job may be assigned to the worker
 * for that many seconds, as if the worker had polled. Otherwise, the worker gets no job before its
 * next poll. A success resets the count of consecutive failures (strikes).
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

/**
 * Frees a worker whose assignment was withdrawn before the worker fetched it. Keeps
 * `available_until`, because the worker's poll may still wait: the worker can get another job at
 * once.
 */
export async function releaseUnfetched(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    `update workers set status = ${FREED} where worker_id = $1 and status = 'busy'`,
    [workerId],
  );
}

/**
 * Takes a worker out of service until it registers again or an admin resets it (`resetWorker`). If
 * the code is `unresponsive`, a poll also returns the worker to service.
 */
export async function takeOutOfService(
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

/**
 * Ends the status `error` and draining, and clears the strikes, at an admin's request. Does nothing
 * and returns false if the worker has never sent a heartbeat, or if its bootstrap failed.
 */
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

/** Lets the worker finish its attempt, and assigns no further job to it. */
export async function drainWorker(db: Queryable, workerId: string): Promise<void> {
  await execute(db, "update workers set draining = true where worker_id = $1", [workerId]);
}

/** Ends draining, unless the worker is decommissioned. */
export async function undrainWorker(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    "update workers set draining = false where worker_id = $1 and decommissioned_at is null",
    [workerId],
  );
}

/** Removes a worker from the fleet until it registers again. Call when it holds no attempt. */
export async function markDecommissioned(db: Queryable, workerId: string): Promise<void> {
  await execute(
    db,
    `update workers set decommissioned_at = now(), draining = true, status = 'dead', error_code = null,
            status_reason = 'decommissioned', available_until = null where worker_id = $1`,
    [workerId],
  );
}
