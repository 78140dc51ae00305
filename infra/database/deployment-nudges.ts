import { all, execute, maybeOne, type Queryable } from "./pool";

/** A deployment whose workflow has not heard of all that there is to look at. */
export interface Nudge {
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
export async function claimNudges(
  db: Queryable,
  leaseS: number,
  limit: number,
  only: string | null = null,
): Promise<Nudge[]> {
  return await all<Nudge>(
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

export async function noteTold(db: Queryable, deploymentId: string, asked: number): Promise<void> {
  await execute(
    db,
    `update deployments set told = greatest(told, $2), seen_at = now(), tell_at = now()
     where deployment_id = $1`,
    [deploymentId, asked],
  );
}

/** Deployments that owe nothing, and whose workflows were not looked at for a while. */
export async function claimUnseen(db: Queryable, afterS: number, limit: number): Promise<string[]> {
  const rows = await all<{ deployment_id: string }>(
    db,
    `with unseen as (
       select deployment_id from deployments
       where status <> 'stopped' and asked = told and seen_at < now() - make_interval(secs => $1)
       order by seen_at limit $2 for no key update skip locked)
     update deployments d set seen_at = now() from unseen
     where d.deployment_id = unseen.deployment_id returning d.deployment_id`,
    [afterS, limit],
  );
  return rows.map((row) => row.deployment_id);
}

/** Its workflow has something to look at. */
export async function ask(db: Queryable, deploymentId: string): Promise<void> {
  await execute(
    db,
    "update deployments set asked = asked + 1 where deployment_id = $1 and status <> 'stopped'",
    [deploymentId],
  );
}
