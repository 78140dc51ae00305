import type { WorkerStatus } from "../../core/jobs/states";
import type { Config } from "../../platform/config/config";
import { all, execute, type Queryable } from "../../platform/postgres/pool";
import { HELD_ATTEMPT } from "./eligibility-sql";
import { OFFER_S, type WorkerCall } from "./workers";

export interface Heartbeat extends WorkerCall {
  util: number | null;
  memUsed: number | null;
  memTotal: number | null;
  /**
   * The worker's own description of the error that keeps it from working; null if there is none.
   */
  errorReason: string | null;
}

/**
 * The state of a worker after a heartbeat, and the attempt and placements that the worker holds.
 */
export interface HeartbeatState {
  worker_id: string;
  user_id: string;
  bound_key_id: string | null;
  status: WorkerStatus;
  /** The status before the heartbeat. */
  was: WorkerStatus;
  draining: boolean;
  held_job_id: string | null;
  held_attempt: number | null;
  /** Consecutive heartbeats that report no job; null if the worker has not fetched the attempt. */
  held_denials: number | null;
  held_cancelled: boolean;
  /** The placements that the worker serves or must stop; null if there are none. */
  placements: LivePlacement[] | null;
}

export interface LivePlacement {
  deployment_id: string;
  /** The id that the worker uses for the deployment. */
  served_as: string;
  stopping: boolean;
  missing: boolean;
  healthy: boolean;
  /**
   * The placement has been missing for more than `missingS`, or unhealthy for more than
   * `unhealthyS`.
   */
  grace_over: boolean;
}

/**
 * Records the heartbeats of many workers in one statement, at most one per worker. A heartbeat
 * revives a dead worker unless the worker is decommissioned. Skips workers that are not registered
 * with the owner and key of their heartbeat. Also skips workers whose rows are locked: waiting for
 * these rows would block the scheduler, which may need rows that this statement has already locked.
 */
export async function recordHeartbeats(
  db: Queryable,
  heartbeats: Heartbeat[],
  { missingS, unhealthyS }: Config["deployments"],
) {
  return await all<HeartbeatState>(
    db,
    `with given as (
       select "workerId" as worker_id, "userId" as user_id, "boundKeyId" as bound_key_id, util,
              "memUsed" as used, "memTotal" as total, "errorReason" as reason
       from json_to_recordset($1) as heartbeats ("workerId" text, "userId" text, "boundKeyId" text,
                                            util float8, "memUsed" float8, "memTotal" float8,
                                            "errorReason" text)),
     before as materialized (
       select w.worker_id, w.status, g.util, g.used, g.total, g.reason
       from workers w join given g using (worker_id, user_id)
       where g.bound_key_id is null or g.bound_key_id = w.bound_key_id
       order by w.worker_id for no key update of w skip locked),
     recorded as (
       update workers w set heartbeat_seq = heartbeat_seq + 1, last_heartbeat_at = now(),
              util = b.util, mem_used = b.used, mem_total = b.total,
              status = case when w.decommissioned_at is not null then w.status
                            when w.status in ('dead', 'idle') and (b.reason is not null
                              or w.status = 'dead' and w.error_code is not null) then 'error'
                            when w.status = 'dead' then 'idle'
                            else w.status end,
              status_reason = case when w.status = 'dead' and w.error_code is null
                                        and w.decommissioned_at is null then b.reason
                                   else coalesce(b.reason, w.status_reason) end,
              error_code = case when b.reason is not null and w.error_code is null
                                     and w.status in ('idle', 'busy', 'dead') then 'reported'
                                else w.error_code end
       from before b where w.worker_id = b.worker_id
       returning w.worker_id, w.user_id, w.bound_key_id, w.status, b.status as was, w.draining)
     select r.*, a.job_id as held_job_id, a.attempt as held_attempt,
            case when a.state = 'running' then a.denials end as held_denials,
            a.cancel_by is not null as held_cancelled,
            (select json_agg(json_build_object(
               'deployment_id', p.deployment_id,
               'served_as', coalesce(p.served_as, p.deployment_id), 'stopping', p.state = 'stopping',
               'missing', p.missing_since is not null, 'healthy', p.healthy,
               'grace_over', coalesce(p.missing_since < now() - make_interval(secs => $2), false)
                      or coalesce(p.unhealthy_since < now() - make_interval(secs => $3), false)))
             from placements p
             where p.worker_id = r.worker_id and p.state in ('serving', 'stopping')) as placements
     from recorded r left join lateral (
       -- With a plain join, Postgres may read the attempts of all workers for each heartbeat.
       select job_id, attempt, state, denials, cancel_by from attempts
       where worker_id = r.worker_id and state in ('assigned', 'running') offset 0) a on true`,
    [JSON.stringify(heartbeats), missingS, unhealthyS],
  );
}

/**
 * Filters `calls`. Keeps a call if its worker is registered with the call's owner and key. A key
 * of null matches any key.
 */
export async function listRegistered<T extends WorkerCall>(
  db: Queryable,
  calls: T[],
): Promise<T[]> {
  const given = calls.map(({ workerId, userId, boundKeyId }, n) => {
    return { n, workerId, userId, boundKeyId };
  });
  const rows = await all<{ n: number }>(
    db,
    `select n from workers w
     join json_to_recordset($1) given (n int, "workerId" text, "userId" text, "boundKeyId" text)
       on w.worker_id = "workerId" and w.user_id = "userId"
     where "boundKeyId" is null or "boundKeyId" = w.bound_key_id`,
    [JSON.stringify(given)],
  );
  const found = new Set(rows.map((row) => row.n));
  return calls.filter((_, n) => found.has(n));
}

/** Counters that grow with each heartbeat and each poll of a worker. */
export interface WorkerCounters {
  worker_id: string;
  heartbeat_seq: number;
  /**
   * Null while the worker need not send a new poll: it has a waiting poll, it is draining, or it is
   * not idle.
   */
  poll_seq: number | null;
}

/** SQL: whether worker `w` is being bootstrapped, or its bootstrap failed. */
const IS_BEING_SET_UP = `(w.status = 'bootstrapping'
  or w.status = 'error' and w.error_code is not distinct from 'bootstrap_failed')`;

/**
 * SQL: whether the fleet monitor watches worker `w`. It watches a worker that is being set up again
 * only while that worker still holds an attempt or a placement from before.
 */
const IS_WATCHED = `case when ${IS_BEING_SET_UP} then exists (${HELD_ATTEMPT}) or exists (
    select from placements p where p.worker_id = w.worker_id and p.state in ('serving', 'stopping'))
  else w.status in ('idle', 'busy', 'error') end`;

/** The counters of all workers that have sent a heartbeat and are watched. */
export async function listWorkerCounters(db: Queryable) {
  return await all<WorkerCounters>(
    db,
    `select worker_id, heartbeat_seq,
            case when status = 'idle' and not draining and not coalesce(
              available_until > now() + make_interval(secs => ${OFFER_S}), false) then poll_seq end
              as poll_seq
     from workers w where heartbeat_seq > 0 and ${IS_WATCHED}`,
  );
}

/**
 * Marks a worker dead if no heartbeat has arrived since `seq`. Keeps `available_until`: the
 * worker's poll may still wait, and can get a job at once if a heartbeat revives the worker. A
 * worker that is being set up keeps its status: it is out of service anyway, and `dead` would end
 * its bootstrap or hide its error.
 *
 * @returns false if a heartbeat has arrived, or if the worker is already dead.
 */
export async function markDead(
  db: Queryable,
  workerId: string,
  seq: number,
  reason: string,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update workers w set
       status = case when ${IS_BEING_SET_UP} then w.status else 'dead' end,
       status_reason = case when ${IS_BEING_SET_UP} then w.status_reason else $3 end
     where worker_id = $1 and heartbeat_seq = $2 and status in ('bootstrapping', 'idle', 'busy', 'error')`,
    [workerId, seq, reason],
  );
  return changed === 1;
}

/** Marks an idle worker `unresponsive` if it has not polled since `seq`. */
export async function markUnresponsive(
  db: Queryable,
  workerId: string,
  seq: number,
  reason: string,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update workers set status = 'error', error_code = 'unresponsive', status_reason = $3
     where worker_id = $1 and poll_seq = $2 and status = 'idle' and not draining`,
    [workerId, seq, reason],
  );
  return changed === 1;
}
