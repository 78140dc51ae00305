import type { PlacementOutcome, PlacementState } from "../../core/deployments/workflow";
import { LOCKED_AT } from "../../platform/postgres/clock";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

export interface PlacementRow {
  deployment_id: string;
  placement: number;
  job_id: string;
  worker_id: string | null;
  inference_url: string | null;
  state: PlacementState;
  outcome: PlacementOutcome | null;
  created_at: Date;
  serving_at: Date | null;
  stopping_at: Date | null;
  ended_at: Date | null;
  healthy: boolean;
}

/**
 * Placements of these deployments, ordered by deployment and number. While a placement is starting,
 * `worker_id` is its job's worker.
 */
export async function listPlacements(db: Queryable, deploymentIds: string[], liveOnly = false) {
  return await all<PlacementRow>(
    db,
    `select p.deployment_id, p.placement, p.job_id, coalesce(p.worker_id, j.worker_id) as worker_id,
            p.inference_url, p.state, p.outcome, p.created_at, p.serving_at, p.stopping_at, p.ended_at,
            p.healthy
     from placements p join jobs j using (job_id)
     where p.deployment_id = any($1) and (p.state <> 'ended' or not $2)
     order by p.deployment_id, p.placement`,
    [deploymentIds, liveOnly],
  );
}

export async function insertPlacement(
  db: Queryable,
  deploymentId: string,
  placement: number,
  jobId: string,
): Promise<void> {
  await execute(
    db,
    "insert into placements (deployment_id, placement, job_id) values ($1, $2, $3)",
    [deploymentId, placement, jobId],
  );
}

/**
 * Records that a placement's job has completed. The placement then serves. If the deployment no
 * longer needs the placement, the placement stops at once. If the worker has died, the placement
 * ends as `worker_lost`. A placement that has ended is not changed. The caller holds the locks of
 * worker and deployment.
 */
export async function servePlacement(db: Queryable, jobId: string, attempt: number): Promise<void> {
  await execute(
    db,
    `with made as (
       select p.deployment_id, p.placement, a.worker_id, a.result->>'inference_url' as url, a.ended_at,
              a.serving_token,
              case when p.placement = 1 then a.result->>'deployment_id' end as served_as,
              w.status <> 'dead' and w.decommissioned_at is null as lives,
              d.status = 'active' and d.max_replicas > (
                select count(*) from placements o
                where o.deployment_id = d.deployment_id and o.state = 'serving') as is_wanted
       from placements p join deployments d using (deployment_id)
       join attempts a on a.job_id = p.job_id and a.attempt = $2
       join workers w on w.worker_id = a.worker_id
       where p.job_id = $1 and p.state = 'starting')
     update placements p set worker_id = made.worker_id, inference_url = made.url,
            token = made.serving_token,
            served_as = made.served_as,
            serving_at = made.ended_at,
            state = case when not lives then 'ended' when is_wanted then 'serving' else 'stopping' end,
            outcome = case when not lives then 'worker_lost' end,
            ended_at = case when not lives then ${LOCKED_AT} end,
            stopping_at = case when lives and not is_wanted then ${LOCKED_AT} end
     from made where p.deployment_id = made.deployment_id and p.placement = made.placement`,
    [jobId, attempt],
  );
}

/**
 * SQL: locks the placements that meet `condition` and belong to a deployment in the CTE `held`.
 * Locks the placements in key order, like `recordStep` (record-step.ts): different orders could
 * cause a deadlock.
 */
const lockHeld = (condition: string): string => `
  select p.deployment_id, p.placement from placements p join held using (deployment_id)
  where ${condition} order by p.deployment_id, p.placement for no key update of p`;

/**
 * Ends the placements of a lost worker, and requests a wake of their deployments' workflows. The
 * caller holds the worker's lock.
 *
 * @returns the deployments to wake.
 */
export async function endPlacementsOfLostWorker(
  db: Queryable,
  workerId: string,
): Promise<string[]> {
  const rows = await all<{ deployment_id: string }>(
    db,
    `with held as materialized (
       select d.deployment_id from deployments d
       where d.deployment_id in (select p.deployment_id from placements p
                                 where p.worker_id = $1 and p.state in ('serving', 'stopping'))
       order by d.deployment_id for no key update),
     lost as materialized (${lockHeld("p.worker_id = $1 and p.state in ('serving', 'stopping')")}),
     ended as (
       update placements p set state = 'ended', ended_at = ${LOCKED_AT},
              outcome = case when p.state = 'stopping' then 'stopped' else 'worker_lost' end
       from lost where p.deployment_id = lost.deployment_id and p.placement = lost.placement
       returning p.deployment_id)
     update deployments d set asked = asked + 1 from ended where d.deployment_id = ended.deployment_id
     returning d.deployment_id`,
    [workerId],
  );
  return rows.map((row) => row.deployment_id);
}

/**
 * SQL: sets a serving placement to `stopping` and ends a starting one. The caller holds the
 * deployment's lock.
 */
const STOP = `state = case when p.state = 'serving' then 'stopping' else 'ended' end,
  stopping_at = ${LOCKED_AT},
  outcome = case when p.state = 'serving' then null else 'stopped' end,
  ended_at = case when p.state = 'serving' then null else ${LOCKED_AT} end`;

/**
 * Stops all placements of a deployment except `keep` of them. Serving placements are kept before
 * starting ones, and older placements before newer ones.
 */
export async function stopPlacements(db: Queryable, deploymentId: string, keep = 0) {
  return await execute(
    db,
    `with kept as (
       select placement from placements
       where deployment_id = $1 and state in ('starting', 'serving')
       order by state = 'starting', placement limit $2),
     stopped as materialized (
       select placement from placements
       where deployment_id = $1 and state in ('starting', 'serving') and placement not in (select placement from kept)
       order by placement for no key update)
     update placements p set ${STOP} from stopped where p.deployment_id = $1 and p.placement = stopped.placement`,
    [deploymentId, keep],
  );
}

/** Ends a starting placement whose job has failed. */
export async function failPlacement(
  db: Queryable,
  deploymentId: string,
  placement: number,
): Promise<boolean> {
  const changed = await execute(
    db,
    `update placements set state = 'ended', outcome = 'failed', ended_at = ${LOCKED_AT}
     where deployment_id = $1 and placement = $2 and state = 'starting'`,
    [deploymentId, placement],
  );
  return changed === 1;
}

/**
 * Ends placements whose stop was requested more than `graceS` seconds ago, and requests a wake of
 * their deployments' workflows. If a worker still runs the server of such a placement, every
 * heartbeat response tells the worker to stop the server. Skips deployments that are locked.
 *
 * @returns the deployments to wake.
 */
export async function endOverdueStops(db: Queryable, graceS: number): Promise<string[]> {
  const rows = await all<{ deployment_id: string }>(
    db,
    `with overdue as materialized (
       select distinct deployment_id from placements
       where state = 'stopping' and stopping_at < now() - make_interval(secs => $1)),
     held as materialized (
       select d.deployment_id from deployments d join overdue using (deployment_id)
       order by d.deployment_id for no key update of d skip locked),
     late as materialized (
       ${lockHeld("p.state = 'stopping' and p.stopping_at < now() - make_interval(secs => $1)")}),
     ended as (
       update placements p set state = 'ended', outcome = 'stopped', ended_at = ${LOCKED_AT}
       from late where p.deployment_id = late.deployment_id and p.placement = late.placement
       returning p.deployment_id)
     update deployments d set asked = asked + 1 from ended where d.deployment_id = ended.deployment_id
     returning d.deployment_id`,
    [graceS],
  );
  return rows.map((row) => row.deployment_id);
}

/** The number of the next placement. The caller holds the deployment's lock. */
export async function nextPlacement(db: Queryable, deploymentId: string): Promise<number> {
  const row = await maybeOne<{ n: number }>(
    db,
    "select coalesce(max(placement), 0) + 1 as n from placements where deployment_id = $1",
    [deploymentId],
  );
  return row?.n ?? 1;
}
