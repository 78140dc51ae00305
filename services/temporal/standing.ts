import { all, type Queryable } from "../../platform/postgres/pool";

/** A row that owes its workflow nothing, and has not moved for a while: the workflow should be open. */
export interface Standing {
  id: string;
  /** Its workflow has work to do: it is compared even where it is open. */
  is_due: boolean;
}

/** Rows that are compared with their workflows. Conditions are SQL, with $1 for how many seconds a row has stood. */
export interface ComparedRows {
  table: "jobs" | "pipelines" | "deployments";
  id: string;
  isOver: string;
  stands: string;
}

/** Of a row whose changes are counted in `asked`, and what its workflow was told of them in `told`. */
export const OWES_NOTHING = "told = asked and seen_at < now() - make_interval(secs => $1)";

/** Of rows whose workflows are open, those that are over and stand, and those that are not in the database. */
export async function listNotStanding(
  db: Queryable,
  { table, id, isOver, stands }: ComparedRows,
  ids: string[],
  forS: number,
): Promise<string[]> {
  const rows = await all<{ id: string }>(
    db,
    `select given.id from unnest($2::text[]) given (id) left join ${table} on ${table}.${id} = given.id
     where ${table}.${id} is null or ${isOver} and ${stands}`,
    [forS, ids],
  );
  return rows.map((row) => row.id);
}
