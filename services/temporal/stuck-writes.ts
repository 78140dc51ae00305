import { all, execute, maybeOne, type Queryable } from "../../platform/postgres/pool";

/**
 * An activity that keeps failing or hanging, and that Temporal retries. Usually it makes a
 * workflow's final writes.
 */
export interface StuckWrite {
  workflow_id: string;
  activity: string;
  error: string;
  tries: number;
  /** Time of the first try. */
  since: Date;
  tried_at: Date;
}

type Failing = Pick<StuckWrite, "workflow_id" | "activity" | "error" | "tries" | "since">;

export async function recordStuckWrite(db: Queryable, failing: Failing): Promise<void> {
  await execute(
    db,
    `insert into stuck_writes (workflow_id, activity, error, tries, since) values ($1, $2, $3, $4, $5)
     on conflict (workflow_id, activity) do update
     set error = excluded.error, tries = excluded.tries, since = excluded.since, tried_at = now()`,
    [failing.workflow_id, failing.activity, failing.error, failing.tries, failing.since],
  );
}

/**
 * Deletes the stuck write of an activity that has succeeded. If `activity` is null, deletes all
 * stuck writes of a workflow that has closed.
 */
export async function deleteStuckWrites(
  db: Queryable,
  workflowId: string,
  activity: string | null,
): Promise<void> {
  await execute(
    db,
    "delete from stuck_writes where workflow_id = $1 and activity = coalesce($2, activity)",
    [workflowId, activity],
  );
}

/**
 * Deletes stuck writes whose last try is more than two days ago. Their workflows were terminated or
 * reset by hand, so nothing else deletes them. The age is two days because an activity may read
 * files for a day before it fails again.
 */
export async function deleteOldStuckWrites(db: Queryable): Promise<void> {
  await execute(db, "delete from stuck_writes where tried_at < now() - interval '2 days'");
}

export async function hasStuckWrite(db: Queryable, workflowId: string): Promise<boolean> {
  const row = await maybeOne(db, "select from stuck_writes where workflow_id = $1", [workflowId]);
  return row !== undefined;
}

export async function listStuckWrites(db: Queryable) {
  return await all<StuckWrite>(
    db,
    "select * from stuck_writes order by since, workflow_id limit 1000",
  );
}
