import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { type ComparedRows, OWES_NOTHING, type Standing } from "../temporal/standing";
import type { DeploymentRow } from "./deployments";

/** A deployment whose workflow has not heard of all that there is to look at. */
export interface DueWake {
  deployment_id: string;
  user_id: string;
  asked: number;
}

/** Whether a sweep could find anything: a deployment that is not over, or a server that is to stop. */
export async function isAnyDeployed(db: Queryable): Promise<boolean> {
  const row = await maybeOne(
    db,
    `select where exists (select from deployments where status <> 'stopped')
                or exists (select from placements where state = 'stopping')`,
  );
  return row !== undefined;
}

/**
 * Deployments that are owed a nudge; each is handed to one process for a while.
 *
 * @param only this one, whoever has it.
 */
export async function claimDueWakes(
  db: Queryable,
  leaseS: number,
  limit: number,
  only: string | null = null,
): Promise<DueWake[]> {
  return await all<DueWake>(
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

/** A deployment as it is compared with its workflow. */
export async function findComparedDeployment(
  db: Queryable,
  deploymentId: string,
): Promise<(DueWake & Pick<DeploymentRow, "status">) | undefined> {
  return await maybeOne(
    db,
    "select deployment_id, user_id, asked, status from deployments where deployment_id = $1",
    [deploymentId],
  );
}

/** As they are compared with open workflows. */
export const DEPLOYMENTS: ComparedRows = {
  table: "deployments",
  id: "deployment_id",
  isOver: "status = 'stopped'",
  stands: OWES_NOTHING,
};

/** A page of those that live and stand, by id, after `afterId`: their workflows should be open. */
export async function listStandingDeployments(
  db: Queryable,
  forS: number,
  afterId: string,
  limit: number,
): Promise<Standing[]> {
  return await all<Standing & Record<string, unknown>>(
    db,
    `select deployment_id as id, false as is_due from deployments
     where status <> 'stopped' and deployment_id > $2 and ${OWES_NOTHING}
     order by deployment_id limit $3`,
    [forS, afterId, limit],
  );
}
