import { WorkflowExecutionAlreadyStartedError } from "@temporalio/client";
import { BOOTSTRAP_WORKFLOW, type BootstrapInput } from "../../core/fleet/bootstrap";
import { bootstrapWorkflowId } from "../../core/workflow-ids";
import { TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";
import type { Topic } from "../outbox/topic";
import { temporalReceiver } from "../temporal/temporal-receiver";
import { claimBootstraps, type DueBootstrap } from "./bootstraps";

/**
 * Starts the workflows that set up workers. The row of a `bootstrapping` worker is an outbox entry
 * until the set-up has ended (see `claimBootstraps`). While the workflow runs, another start does
 * nothing. The courier does not remove the entry after a start. Instead, the workflow records in
 * the row which run it has started (`beginBootstrap`).
 */
export const bootstrapTopic = (ctx: Context): Topic<DueBootstrap, never> => ({
  ...temporalReceiver(ctx),
  name: "bootstrap-starter",
  sweepMs: 1_000,
  claim: (limit) => claimBootstraps(ctx.pool, ctx.config.reconcileAfterS, limit),
  async deliver({ worker_id: workerId, bootstrap_run: run }) {
    await ctx.temporal.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
      startBootstrap(ctx, { workerId, run }),
    );
    return "delivered";
  },
  logFieldsOf: ({ worker_id }) => ({ worker_id }),
  callOf: () => "bootstrap",
});

async function startBootstrap({ temporal, config }: Context, input: BootstrapInput): Promise<void> {
  const { taskQueue, taskTimeoutMs } = config.temporal;
  try {
    await temporal.workflow.start(BOOTSTRAP_WORKFLOW, {
      workflowId: bootstrapWorkflowId(input.workerId),
      taskQueue,
      workflowTaskTimeout: taskTimeoutMs,
      args: [input],
      workflowIdReusePolicy: "ALLOW_DUPLICATE",
      workflowIdConflictPolicy: "USE_EXISTING",
      staticSummary: `sets up ${input.workerId}`,
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
