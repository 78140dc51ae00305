import { WAKE_SIGNAL } from "../../core/workflow-ids";
import { searchAttributeKeys, TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";

interface WakeTarget {
  /** The registered workflow type. */
  workflow: string;
  workflowId: string;
  input: object;
  userId: string;
  summary: string;
}

/**
 * Signals the workflow of a pipeline or a deployment to read Postgres again. Starts the workflow if
 * it does not run. Workflows of jobs get no signal: see `deliverOutcome` in jobs/job-workflows.ts.
 */
export async function wakeWorkflow(ctx: Context, target: WakeTarget): Promise<void> {
  const { workflow, workflowId, input, userId, summary } = target;
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
