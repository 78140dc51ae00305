import type { Config } from "../../platform/config/config";
import { LOCKED_AT } from "../../platform/postgres/clock";
import { all, type Queryable } from "../../platform/postgres/pool";
import { rowFilter } from "../../platform/postgres/row-filter";
import { backoff } from "./deployments";

/** A heartbeat's report on one live placement of its worker. */
export interface PlacementReport {
  deploymentId: string;
  isListed: boolean;
  isUnhealthy: boolean;
}

/**
 * If a serving placement fails within this time after it began to serve, the next placement is
 * delayed, as after a failed start.
 */
const EARLY_END = "interval '5 minutes'";

/**
 * A placement can be told to stop as soon as its server has started (see `servePlacement`). A
 * heartbeat that the worker sent before it started the server can then arrive after the stop
 * request, although the server still runs. So a heartbeat that does not list the server ends the
 * placement only if the stop was requested more than this time ago.
 */
const STALE_REPORT = "interval '1 second'";

/**
 * Records what a heartbeat reports about its worker's placements. Ends placements whose server has
 * been missing or unhealthy for too long, and stopping placements whose server is gone. Requests a
 * wake of the workflows of their deployments.
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
         ended_at = case when j.outcome is not null then ${LOCKED_AT} end
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
 * Of the deployments that a worker reports, returns those that it should not serve. The worker
 * should serve a deployment that has a `serving` placement on this worker. It should also serve a
 * deployment that one of its attempts has started, while the attempt runs and while the attempt's
 * result is processed.
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
       where a.worker_id = $1 and ${rowFilter("j.status not in ('completed', 'failed')")}
         and (a.state = 'running' or a.outcome = 'completed')
         and (a.output_ids->>'deployment_id' = id or exists (
           select from artifacts r
           where coalesce(r.given_id, r.artifact_id) = id and r.job_id = a.job_id and r.attempt = a.attempt)))`,
    [workerId, deploymentIds],
  );
  return rows.map((row) => row.id);
}
