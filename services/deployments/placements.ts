import type { PlacementOutcome, PlacementState } from "../../core/deployments/workflow";
import type { Config } from "../../platform/config/config";
import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { backoff } from "./deployments";

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
 * Placements of these deployments, ordered by deployment and number. While a placement is starting, `worker_id` is its
 * job's worker.
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
 * Records that a placement's job has completed. The placement then serves. If the deployment no longer needs the
 * placement, the placement stops at once. If the worker has died, the placement ends as `worker_lost`. A placement that
 * has ended is not changed. The caller holds the locks of worker and deployment.
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
            ended_at = case when not lives then now() end,
            stopping_at = case when lives and not is_wanted then now() end
     from made where p.deployment_id = made.deployment_id and p.placement = made.placement`,
    [jobId, attempt],
  );
}

/**
 * SQL: locks the placements that meet the condition, of the deployments in `held`. Locks in key order, as the recording
 * of a clock step does (record-step.ts), so that the two can't deadlock.
 */
const lockHeld = (condition: string): string => `
  select p.deployment_id, p.placement from placements p join held using (deployment_id)
  where ${condition} order by p.deployment_id, p.placement for no key update of p`;

/**
 * Ends the placements of a lost worker and requests a wake of their deployments. The caller holds the worker's lock.
 *
 * @returns the deployments.
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
       update placements p set state = 'ended', ended_at = now(),
              outcome = case when p.state = 'stopping' then 'stopped' else 'worker_lost' end
       from lost where p.deployment_id = lost.deployment_id and p.placement = lost.placement
       returning p.deployment_id)
     update deployments d set asked = asked + 1 from ended where d.deployment_id = ended.deployment_id
     returning d.deployment_id`,
    [workerId],
  );
  return rows.map((row) => row.deployment_id);
}

/** SQL: sets a serving placement to `stopping` and ends a starting one. The caller holds the deployment's lock. */
const STOP = `state = case when p.state = 'serving' then 'stopping' else 'ended' end,
  stopping_at = now(),
  outcome = case when p.state = 'serving' then null else 'stopped' end,
  ended_at = case when p.state = 'serving' then null else now() end`;

/** Stops all placements of a deployment except `keep` of them. Prefers to keep serving ones, then older ones. */
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
    `update placements set state = 'ended', outcome = 'failed', ended_at = now()
     where deployment_id = $1 and placement = $2 and state = 'starting'`,
    [deploymentId, placement],
  );
  return changed === 1;
}

/** What a heartbeat reports about one of its worker's live placements. */
export interface PlacementReport {
  deploymentId: string;
  isListed: boolean;
  isUnhealthy: boolean;
}

/**
 * If a placement fails within this time after it began to serve, the next placement is delayed, as after a failed
 * start.
 */
const EARLY_END = "interval '5 minutes'";

/**
 * If a heartbeat arrives this soon after a stop and does not list the server, that does not prove that the server has
 * ended: the worker may have sent the heartbeat before the server started.
 */
const STALE_REPORT = "interval '1 second'";

/**
 * Records what a heartbeat reports about its worker's placements. Ends placements whose server has been missing or
 * unhealthy for too long, and stopping placements whose server is gone. Requests a wake of the deployments of ended
 * placements.
 *
 * @returns the deployments to wake.
 */
export async function recordPlacementReports(
  db: Queryable,
  workerId: string,
  reports: PlacementReport[],
  { missingS, unhealthyS, retryS }: Config["deployments"],
): Promise<string[]> {
  const rows = await all<{ deployment_id: string }>(
    db,
    `with given as (
       select * from unnest($2::text[], $3::bool[], $4::bool[]) g (deployment_id, listed, sick)),
     held as materialized (
       select d.deployment_id from deployments d join given using (deployment_id)
       order by d.deployment_id for no key update of d),
     judged as materialized (
       select p.deployment_id, p.placement, g.listed, g.sick, case
           when p.state = 'stopping' then
             case when not g.listed and p.stopping_at < now() - ${STALE_REPORT} then 'stopped' end
           when not g.listed and p.missing_since < now() - make_interval(secs => $5) then 'missing'
           when g.sick and p.unhealthy_since < now() - make_interval(secs => $6) then 'unhealthy'
         end as outcome
       from held join given g using (deployment_id) join placements p using (deployment_id)
       where p.worker_id = $1 and p.state in ('serving', 'stopping')
       order by p.deployment_id, p.placement for no key update of p),
     changed as (
       update placements p set
         missing_since = case when not j.listed then coalesce(p.missing_since, now()) end,
         healthy = not j.sick,
         unhealthy_since = case when j.sick then coalesce(p.unhealthy_since, now()) end,
         state = case when j.outcome is null then p.state else 'ended' end,
         outcome = j.outcome,
         ended_at = case when j.outcome is not null then now() end
       from judged j
       where p.deployment_id = j.deployment_id and p.placement = j.placement
         and p.state in ('serving', 'stopping')
       returning p.deployment_id, p.outcome, p.serving_at),
     ended as (
       select deployment_id, outcome, outcome <> 'stopped' as failed,
              serving_at > now() - ${EARLY_END} as is_early
       from changed where outcome is not null)
     update deployments d set asked = asked + 1,
       failures = case when e.failed and e.is_early then d.failures + 1
                       when e.failed then 0 else d.failures end,
       next_try_at = case when e.failed and e.is_early then now() + ${backoff("d.failures", "$7")}
                          else d.next_try_at end,
       trouble = case when e.failed then 'its server on a worker was ' || e.outcome else d.trouble end
     from ended e where d.deployment_id = e.deployment_id
     returning d.deployment_id`,
    [
      workerId,
      reports.map(({ deploymentId }) => deploymentId),
      reports.map(({ isListed }) => isListed),
      reports.map(({ isUnhealthy }) => isUnhealthy),
      missingS,
      unhealthyS,
      retryS,
    ],
  );
  return rows.map((row) => row.deployment_id);
}

/**
 * Ends placements that should have stopped more than `graceS` seconds ago, and requests a wake of their deployments. If
 * a worker still serves such a deployment, the answer to each of its heartbeats tells it to stop the server. Skips
 * deployments that are locked.
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
       update placements p set state = 'ended', outcome = 'stopped', ended_at = now()
       from late where p.deployment_id = late.deployment_id and p.placement = late.placement
       returning p.deployment_id)
     update deployments d set asked = asked + 1 from ended where d.deployment_id = ended.deployment_id
     returning d.deployment_id`,
    [graceS],
  );
  return rows.map((row) => row.deployment_id);
}

/**
 * Of the deployments that a worker reports, returns those that it should not serve. The worker should serve a
 * deployment if the deployment's placement on it is `serving`. The worker should also serve what an attempt on it has
 * started, while the attempt runs and while its result is processed.
 */
export async function listUnexpectedDeployments(
  db: Queryable,
  workerId: string,
  deploymentIds: string[],
): Promise<string[]> {
  const rows = await all<{ id: string }>(
    db,
    `select id from unnest($2::text[]) as served (id)
     where not exists (
       select from placements p
       where p.worker_id = $1 and coalesce(p.served_as, p.deployment_id) = id and p.state = 'serving')
     and not exists (
       select from attempts a join jobs j using (job_id)
       where a.worker_id = $1 and j.status not in ('completed', 'failed')
         and (a.state = 'running' or a.outcome = 'completed')
         and (a.output_ids->>'deployment_id' = id or exists (
           select from artifacts r
           where coalesce(r.given_id, r.artifact_id) = id and r.job_id = a.job_id and r.attempt = a.attempt)))`,
    [workerId, deploymentIds],
  );
  return rows.map((row) => row.id);
}

export interface ServingTarget {
  /** As reported by its worker. */
  inference_url: string;
  /** Authenticates requests to the server; null if the worker got no token. */
  token: string | null;
  /** The address that its worker's requests come from. */
  worker_address: string | null;
  /** Hosts that the worker's owner allows. */
  hosts: string[];
}

/** The deployment's healthy servers: first those that the last heartbeat listed, otherwise in random order. */
export async function listTargets(db: Queryable, deploymentId: string) {
  return await all<ServingTarget>(
    db,
    `select p.inference_url, p.token, w.address as worker_address,
            array_remove(coalesce(k.serving_hosts, '{}') || w.ssh_host, null) as hosts
     from placements p join workers w using (worker_id)
     left join api_keys k on k.key_id = w.bound_key_id
     where p.deployment_id = $1 and p.state = 'serving' and p.healthy and p.inference_url is not null
     order by p.missing_since is not null, random()`,
    [deploymentId],
  );
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
