import { all, maybeOne, type Queryable } from "../../platform/postgres/pool";
import { IS_LIVE } from "./keys";

/** Holds off every other transaction that adds to what is counted of this tenant, to this one's end. */
export async function lockTenant(db: Queryable, userId: string): Promise<void> {
  await maybeOne(db, "select from users where user_id = $1 for no key update", [userId]);
}

const count = async (db: Queryable, sql: string, userId: string): Promise<number> =>
  Number((await maybeOne<{ n: string }>(db, sql, [userId]))?.n ?? 0);

/** Without those that machines were given which are set up over SSH: they count as workers. */
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

/** Of its artifacts, and of files that its running jobs have uploaded. */
export const sumStoredBytes = (db: Queryable, userId: string): Promise<number> =>
  count(
    db,
    `select coalesce((select sum(size_bytes) from artifacts
                      where user_id = $1 and registered_at is not null and deleted_at is null), 0)
          + coalesce((select sum(f.size_bytes) from jobs j join attempt_files f using (job_id)
                      where j.user_id = $1 and j.status not in ('completed', 'failed')), 0) as n`,
    userId,
  );

/** The bounds of a tenant's shapes, which begin with their tenant (core/jobs/requirements.ts); the upper one is excluded. */
export function shapesOf(userId: string): [from: string, before: string] {
  const first = `${JSON.stringify([userId]).slice(0, -1)},`;
  // The character that follows a comma.
  return [first, `${first.slice(0, -1)}-`];
}

/** A tenant's jobs that wait for a worker. */
export async function countQueuedByGroup(
  db: Queryable,
  userId: string,
): Promise<{ shape: string; jobs: number }[]> {
  return await all(
    db,
    `select shape, count(*)::int as jobs from attempts
     where state = 'queued' and shape >= $1 collate "C" and shape < $2 collate "C" group by shape`,
    shapesOf(userId),
  );
}
