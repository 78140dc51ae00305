import { WAKE_SIGNAL } from "../../core/workflow-ids";
import { searchAttributeKeys, TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";

interface WakeTarget {
  /** The name that it is registered under. */
  workflow: string;
  workflowId: string;
  input: object;
  userId: string;
  summary: string;
}

/** Tells a workflow that there is something to look at in Postgres; one that does not run is started. */
export async function wakeWorkflow(ctx: Context, woken: WakeTarget): Promise<void> {
  const { workflow, workflowId, input, userId, summary } = woken;
  const { taskQueue, taskTimeoutMs } = ctx.config.temporal;
  await ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
    ctx.temporal.workflow.signalWithStart(workflow, {
      workflowId,
      taskQueue,
      workflowTaskTimeout: taskTimeoutMs,
      args: [input],
      signal: WAKE_SIGNAL,
      workflowIdReusePolicy: "ALLOW_DUPLICATE",
      staticSummary: summary,
      typedSearchAttributes: [{ key: searchAttributeKeys.userId, value: userId }],
    }),
  );
}
