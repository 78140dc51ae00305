import { WorkflowExecutionAlreadyStartedError } from "@temporalio/client";
import { BOOTSTRAP_WORKFLOW, type BootstrapInput } from "../../core/fleet/bootstrap";
import { bootstrapWorkflowId } from "../../core/workflow-ids";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import { reasonOf, TEMPORAL_DEADLINE_MS } from "../../platform/temporal/client";
import type { Context } from "../context";
import { claimBootstraps } from "./bootstraps";

const SWEEP_MS = 1_000;

/**
 * Starts the workflows that set workers up. The debt is the worker's row: it is `bootstrapping`, and no
 * workflow has begun this run, or none was seen for a while; one that runs is left alone.
 */
export class BootstrapStarter implements Component {
  readonly name = "bootstrap-starter";
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("bootstrap-starter", SWEEP_MS, () => this.sweep(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const due = await claimBootstraps(this.ctx.pool, this.ctx.config.reconcileAfterS);
    for (const { worker_id: workerId, bootstrap_run: run } of due) {
      await this.ctx.temporal
        .withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, () =>
          this.startWorkflow({ workerId, run }),
        )
        .catch((error: unknown) =>
          this.ctx.logger.warn(
            { worker_id: workerId, err: reasonOf(error) },
            "bootstrap not started",
          ),
        );
    }
  }

  private async startWorkflow(input: BootstrapInput): Promise<void> {
    const { taskQueue, taskTimeoutMs } = this.ctx.config.temporal;
    try {
      await this.ctx.temporal.workflow.start(BOOTSTRAP_WORKFLOW, {
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
}
