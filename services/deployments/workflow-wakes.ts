import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ComparedRows, NOTHING_PENDING } from "../temporal/compared-rows";
import type { DeploymentRow } from "./deployments";

/**
 * A deployment whose workflow must be started or woken. Column `asked` is the requested version of
 * the deployment, `told` the delivered version. Several undelivered changes need only one wake.
 */
export interface DeploymentWake {
  deployment_id: string;
  user_id: string;
  asked: number;
}

/** Whether any deployment is not stopped, or any server is stopping. */
export async function isAnyDeployed(db: Queryable): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select where exists (select from deployments where status <> 'stopped')
                or exists (select from placements where state = 'stopping')`,
  );
  return row !== undefined;
}

/**
 * Claims the deployments whose wake is due. Leases each wake for `leaseS` seconds, so that no row
 * lock is held during the call to Temporal.
 *
 * @param only a deployment id: claims only the wake of this deployment, even if another process has
 *   leased that wake. Null: claims the due wakes of all deployments.
 */
export async function claimDueWakes(
  db: Queryable,
  leaseS: number,
  limit: number,
  only: string | null = null,
) {
  return await all<DeploymentWake>(
    db,
    `with due as (
       select deployment_id from deployments
       where status <> 'stopped' and asked > told
         and (tell_at <= now() or deployment_id = $3) and ($3::text is null or deployment_id = $3)
       order by tell_at limit $2 for no key update skip locked)
     update deployments d set tell_at = now() + make_interval(secs => $1)
     from due where d.deployment_id = due.deployment_id
     returning d.deployment_id, d.user_id, d.asked`,
    [leaseS, limit, only],
  );
}

/** Records that the workflow has received all changes up to version `asked`. Idempotent. */
export async function recordWake(
  db: Queryable,
  deploymentId: string,
  asked: number,
): Promise<void> {
  await execute(
    db,
    `update deployments set told = greatest(told, $2), seen_at = now(), tell_at = now()
     where deployment_id = $1`,
    [deploymentId, asked],
  );
}

const placementExists = (condition: string): string => `exists (
  select from placements p where p.deployment_id = deployments.deployment_id and ${condition})`;

/**
 * SQL: whether the workflow has work to do: to mark a stopping deployment without servers as
 * stopped, to replace a missing server, or to end a placement whose job has failed. Normally the
 * change that caused this work has also woken the workflow, but Temporal may have lost that signal.
 */
const IS_DUE = `case when status = 'stopping' then not ${placementExists("p.state <> 'ended'")}
  else ${placementExists(
    `p.state = 'starting' and exists (
       select from jobs j where j.job_id = p.job_id and j.status = 'failed')`,
  )} or coalesce(next_try_at <= now(), true) and min_replicas > (
    select count(*) from placements p
    where p.deployment_id = deployments.deployment_id and p.state <> 'ended'
      and p.state in ('starting', 'serving')) end`;

export async function findComparedDeployment(db: Queryable, deploymentId: string) {
  return await maybeOne<DeploymentWake & Pick<DeploymentRow, "status"> & { is_due: boolean }>(
    db,
    `select deployment_id, user_id, asked, status, ${IS_DUE} as is_due
     from deployments where deployment_id = $1`,
    [deploymentId],
  );
}

export const DEPLOYMENTS: ComparedRows = {
  table: "deployments",
  id: "deployment_id",
  isLive: "status <> 'stopped'",
  isUnchanged: NOTHING_PENDING,
  isDue: IS_DUE,
};
