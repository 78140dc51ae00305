import type { ComparedRows, UnchangedRow } from "./compared-rows";

/** One kind of workflow and its rows. The reconciler compares the two. */
export interface WorkflowKind {
  /** The registered workflow types. */
  types: readonly string[];
  rows: ComparedRows;
  /** The id of the workflow's row; undefined for a workflow of another kind. */
  idOf(workflowId: string): string | undefined;
  /**
   * A page of unfinished rows without a pending delivery that have been unchanged for `forS` seconds, ordered by id,
   * after `afterId`.
   */
  listUnchanged(forS: number, afterId: string, limit: number): Promise<UnchangedRow[]>;
  /** Compares one workflow with its row and repairs differences. Idempotent. */
  compare(id: string): Promise<unknown>;
}
