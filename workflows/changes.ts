import { patched, workflowInfo } from "@temporalio/workflow";

/**
 * Changes of the workflows' course, and how they come in so that a release may be taken back. Executions
 * live for weeks, and for the time of a rollout both releases do their tasks. So a change comes in two:
 * a release that knows it and does not take it, then one that takes it. What the second has begun, the first
 * can go on with; nothing older can. A change that no execution is older than any more can be written out.
 */
const CHANGES = {
  /** A plan tells the orders; before, an activity of their own read them. */
  planBringsOrders: "plan-brings-orders",
  /** A run that failed stays failed after a look whether there is more; before, it was told as none. */
  lastEndCounts: "last-end-counts",
} as const;

/** Those that new executions take; the others are known only. */
const TAKEN_CHANGES: readonly string[] = ["plan-brings-orders", "last-end-counts"];

/** Of this execution: those that its history says were taken. */
const taken = new Set<string>();

/**
 * Whether this execution takes a change, in place of the SDK's `patched`. One that has begun without it goes on
 * without it; one that a later release has begun with it goes on with it, though this one does not take it.
 */
export function takes(change: keyof typeof CHANGES): boolean {
  const id = CHANGES[change];
  if (TAKEN_CHANGES.includes(id)) return patched(id);
  // In a replay `patched` says what the history has; otherwise it would take the change.
  if (workflowInfo().unsafe.isReplaying && patched(id)) taken.add(id);
  return taken.has(id);
}
