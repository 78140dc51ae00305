import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ComparedRows, NOTHING_PENDING, type UnchangedRow } from "../temporal/compared-rows";
import type { DeploymentRow } from "./deployments";

/**
 * A deployment whose workflow must be started or woken. Column `asked` is the requested version of the deployment,
 * `told` the delivered version. Several undelivered changes are one wake.
 */
export interface DeploymentWake {
  deployment_id: string;
  user_id: string;
  asked: number;
}

/** Whether a sweep could find anything: a deployment that is not stopped, or a server that is stopping. */
export async function isAnyDeployed(db: Queryable): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select where exists (select from deployments where status <> 'stopped')
                or exists (select from placements where state = 'stopping')`,
  );
  return row !== undefined;
}

/**
 * Leases due wakes for `leaseS` seconds, so that no row lock is held during the call to Temporal.
 *
 * @param only claims only the wake of this deployment, even if another process has leased it.
 */
export async function claimDueWakes(
  db: Queryable,
  leaseS: number,
  limit: number,
  only: string | null = null,
): Promise<DeploymentWake[]> {
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

/** The fields of a deployment that the reconciler compares with its workflow. */
export async function findComparedDeployment(
  db: Queryable,
  deploymentId: string,
): Promise<(DeploymentWake & Pick<DeploymentRow, "status">) | undefined> {
  return await maybeOne(
    db,
    "select deployment_id, user_id, asked, status from deployments where deployment_id = $1",
    [deploymentId],
  );
}

/** How the reconciler compares deployments with open workflows. */
export const DEPLOYMENTS: ComparedRows = {
  table: "deployments",
  id: "deployment_id",
  isOver: "status = 'stopped'",
  isUnchanged: NOTHING_PENDING,
};

/**
 * A page of deployments that are not stopped and have been unchanged for `forS` seconds, by id, after `afterId`. Their
 * workflows should be open.
 */
export async function listUnchangedDeployments(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<UnchangedRow[]> {
  return await all<UnchangedRow & Record<string, unknown>>(
    db,
    `select deployment_id as id, false as is_due from deployments
     where status <> 'stopped' and deployment_id > $2 and ${NOTHING_PENDING}
     order by deployment_id limit $3`,
    [forS, afterId, limit],
  );
}
