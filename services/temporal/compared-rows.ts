import { all, type Queryable } from "../../platform/postgres/pool";

/** An unfinished row that has no pending delivery and has not changed for a while: its workflow should be open. */
export interface UnchangedRow {
  id: string;
  /** The workflow has work to do: it is compared even if it is open. */
  is_due: boolean;
}

/** How to compare a table with its workflows. Conditions are SQL; $1 is how many seconds a row must be unchanged. */
export interface ComparedRows {
  table: "jobs" | "pipelines" | "deployments";
  id: string;
  /** The row is in a final state. */
  isOver: string;
  /** The row has no pending delivery and has not changed for $1 seconds. */
  isUnchanged: string;
}

/** SQL: every requested version (`asked`) was delivered to the workflow (`told`), $1 seconds ago or longer. */
export const NOTHING_PENDING = "told = asked and seen_at < now() - make_interval(secs => $1)";

/** From ids with open workflows, returns those whose row is final and unchanged, or does not exist. */
export async function listFinishedOrMissing(
  db: Queryable,
  { table, id, isOver, isUnchanged }: ComparedRows,
  ids: string[],
  forS: number,
): Promise<string[]> {
  const rows = await all<{ id: string }>(
    db,
    `select given.id from unnest($2::text[]) given (id) left join ${table} on ${table}.${id} = given.id
     where ${table}.${id} is null or ${isOver} and ${isUnchanged}`,
    [forS, ids],
  );
  return rows.map((row) => row.id);
}
