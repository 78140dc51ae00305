import { maybeOne, type Queryable } from "./pool";

/** The database's time, the only one that is stored; ISO 8601 UTC. */
export async function readClock(db: Queryable): Promise<string> {
  const row = await maybeOne<{ now: Date }>(db, "select now()");
  if (!row) throw new Error("select now() returned no row");
  return row.now.toISOString();
}
