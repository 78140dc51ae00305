import type { ComparedRows, Standing } from "./standing";

/** Workflows of one kind and the rows that they work for, as the reconciler compares the two. */
export interface WorkflowKind {
  /** The names that these workflows are registered under. */
  types: readonly string[];
  rows: ComparedRows;
  /** The id of the row that a workflow works for; undefined for a workflow of another kind. */
  idOf(workflowId: string): string | undefined;
  /** A page of rows, by id, after `afterId`: those that owe Temporal nothing and have not moved for `forS` seconds. */
  listStanding(forS: number, afterId: string, limit: number): Promise<Standing[]>;
  /** Compares one workflow with its row, and repairs what differs. Idempotent. */
  compare(id: string): Promise<unknown>;
}
