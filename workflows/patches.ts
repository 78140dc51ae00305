import { patched, workflowInfo } from "@temporalio/workflow";

/**
 * Patches of the workflow code. Each patch takes two releases: release N contains the new code, and
 * release N+1 activates it. During a rollout or after a rollback, release N may have to continue
 * executions that release N+1 started, so release N must contain the new code. Releases before N
 * can't continue these executions.
 *
 * Executions live for weeks. Remove a patch only after all executions that started without this
 * patch have closed.
 */
const PATCHES = {
  /**
   * The plan of a pipeline contains its `orders` (cancellation, approvals). Before this patch, the
   * workflow read them with a separate activity.
   */
  planBringsOrders: "plan-brings-orders",
  /**
   * If a wake signal arrives but the pipeline was not resumed, its workflow returns the result of
   * the last run. Before this patch, the workflow returned the status `none`.
   */
  lastEndCounts: "last-end-counts",
} as const;

/** Patches that new executions use. A patch of PATCHES that is missing here is not active yet. */
const ACTIVE_PATCHES: readonly string[] = ["plan-brings-orders", "last-end-counts"];

/** Patches that are in the history of this execution. */
const recorded = new Set<string>();

/**
 * Whether this execution uses a patch. Use it instead of the SDK's `patched`: an execution keeps
 * the patches that it started with, even those that this release does not activate.
 */
export function isPatched(patch: keyof typeof PATCHES): boolean {
  const id = PATCHES[patch];
  if (ACTIVE_PATCHES.includes(id)) return patched(id);
  // Call `patched` only during replay, where it reads the history. Otherwise it would activate the
  // patch.
  if (workflowInfo().unsafe.isReplaying && patched(id)) recorded.add(id);
  return recorded.has(id);
}
