import { all, type Queryable } from "../../platform/postgres/pool";

/** A table whose rows each have a Temporal workflow. The conditions are SQL. */
export interface ComparedRows {
  table: "jobs" | "pipelines" | "deployments";
  /** A subquery to read from instead of `table`, if final rows may be in an archive table. */
  allRows?: string;
  id: string;
  /** The row is not in a final state. */
  isLive: string;
  /** The row has no pending delivery and has not changed for $1 seconds. */
  isUnchanged: string;
  /**
   * The row's workflow has work to do. The reconciler then compares row and workflow even if the
   * workflow is open.
   */
  isDue: string;
}

/** One kind of workflow and its rows. The reconciler compares the two. */
export interface WorkflowKind {
  /** The registered workflow types. */
  types: readonly string[];
  rows: ComparedRows;
  /**
   * A closed workflow must have the same final status as its row. If omitted, the workflow of a
   * final row must be closed, but may have any final status.
   */
  endsAsRow?: true;
  /** The id of the workflow's row; undefined for a workflow of another kind. */
  idOf(workflowId: string): string | undefined;
  /** Compares one workflow with its row and repairs differences. Idempotent. */
  compare(id: string): Promise<unknown>;
}

/**
 * SQL: the last change was delivered to the workflow (`told = asked`), and the delivery was at
 * least $1 seconds ago.
 */
export const NOTHING_PENDING = "told = asked and seen_at < now() - make_interval(secs => $1)";

/**
 * A page of live rows that have not changed for `forS` seconds, ordered by id. Their workflows
 * should be open.
 *
 * @param afterId the last id of the previous page; "" for the first page.
 */
export async function listUnchanged(
  db: Queryable,
  { table, id, isLive, isUnchanged, isDue }: ComparedRows,
  forS: number,
  afterId: string,
  limit: number,
) {
  return await all<{ id: string; is_due: boolean }>(
    db,
    `select ${id} as id, ${isDue} as is_due from ${table}
     where ${isLive} and ${id} > $2 and ${isUnchanged} order by ${id} limit $3`,
    [forS, afterId, limit],
  );
}

/**
 * Returns the ids whose row is missing, or is final and has not changed for `forS` seconds
 * (`isUnchanged`).
 *
 * @param ids the ids of rows whose workflow is open.
 */
export async function listFinishedOrMissing(
  db: Queryable,
  { table, allRows = table, id, isLive, isUnchanged }: ComparedRows,
  ids: string[],
  forS: number,
): Promise<string[]> {
  const rows = await all<{ id: string }>(
    db,
    `select given.id from unnest($2::text[]) given (id) left join ${allRows} ${table} on ${table}.${id} = given.id
     where ${table}.${id} is null or not (${isLive}) and ${isUnchanged}`,
    [forS, ids],
  );
  return rows.map((row) => row.id);
}

/** Returns those of `ids` whose row is final. */
export async function listFinished(
  db: Queryable,
  { table, allRows = table, id, isLive }: ComparedRows,
  ids: string[],
): Promise<string[]> {
  const rows = await all<{ id: string }>(
    db,
    `select ${id} as id from ${allRows} ${table} where ${id} = any($1::text[]) and not (${isLive})`,
    [ids],
  );
  return rows.map((row) => row.id);
}
