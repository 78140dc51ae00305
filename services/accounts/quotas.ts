import { groupWithoutAvoided } from "../../core/jobs/requirements";
import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { IS_LIVE } from "./keys";

/**
 * Locks the tenant's row until the transaction ends, so that no other transaction adds something
 * that a quota counts.
 */
export async function lockTenant(db: Queryable, userId: string): Promise<void> {
  await maybeOne(db, "select from users where user_id = $1 for no key update", [userId]);
}

const count = async (db: Queryable, sql: string, userId: string): Promise<number> =>
  Number((await maybeOne<{ n: string }>(db, sql, [userId]))?.n ?? 0);

/**
 * Counts a tenant's valid keys. Leaves out sessions, which have their own cap, and the keys of
 * machines set up over SSH, which count as workers.
 */
export const countKeys = (db: Queryable, userId: string): Promise<number> =>
  count(
    db,
    `select count(*) as n from api_keys k where user_id = $1 and ${IS_LIVE} and session_of is null
       and not exists (select from workers w where w.user_id = $1 and w.bootstrap_key_id = k.key_id)`,
    userId,
  );

export const countWorkers = (db: Queryable, userId: string): Promise<number> =>
  count(
    db,
    "select count(*) as n from workers where user_id = $1 and decommissioned_at is null",
    userId,
  );

/** Bytes of the tenant's artifacts, and of files uploaded by its unfinished jobs. */
export const sumStoredBytes = (db: Queryable, userId: string): Promise<number> =>
  count(
    db,
    `select coalesce((select sum(size_bytes) from artifacts
                      where user_id = $1 and registered_at is not null and deleted_at is null), 0)
          + coalesce((select sum(f.size_bytes) from jobs j join attempt_files f using (job_id)
                      where j.user_id = $1 and j.status not in ('completed', 'failed')), 0) as n`,
    userId,
  );

/**
 * The range of a tenant's values in column `shape`, for an index range scan. `from` is inclusive,
 * `before` exclusive. `shape` is the key of a requirement group (queued jobs with equal
 * requirements): the text of a JSON array whose first element is the tenant's id.
 */
export function requirementGroupRange(userId: string): [from: string, before: string] {
  const first = `${JSON.stringify([userId]).slice(0, -1)},`;
  // "-" is the next character after ",", so the upper bound sorts after all texts that begin with
  // `first`.
  return [first, `${first.slice(0, -1)}-`];
}

/**
 * The number of a tenant's queued jobs by requirement group. A retry can have a list of workers to
 * avoid. This list is ignored here: groups that differ only in the list are counted as one group.
 */
export async function countQueuedByGroup(
  db: Queryable,
  userId: string,
): Promise<Map<string, number>> {
  const rows = await all<{ shape: string; jobs: number }>(
    db,
    `select shape, count(*)::int as jobs from attempts
     where state = 'queued' and shape >= $1 collate "C" and shape < $2 collate "C" group by shape`,
    requirementGroupRange(userId),
  );
  const byGroup = new Map<string, number>();
  for (const { shape, jobs } of rows) {
    const group = groupWithoutAvoided(shape);
    byGroup.set(group, (byGroup.get(group) ?? 0) + jobs);
  }
  return byGroup;
}
