import { runEach } from "../../platform/concurrency/run-each";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import { reasonOf } from "../../platform/temporal/client";
import type { Context } from "../context";
import { wakeDeployment } from "./deployment-workflows";
import { claimDueWakes, type DueWake, isAnyDeployed } from "./due-wakes";
import { askToGrow } from "./growing-deployments";
import { endOverdueStops } from "./placements";

const SWEEP_MS = 1_000;
const BATCH = 20;

/**
 * Tells the workflows of deployments that there is something to look at, and starts those that do not
 * run. The debt is the deployment's row: it was asked for more often than its workflow was told. It also ends
 * servers that no heartbeat ends. Workflows that are gone, the reconciler finds.
 */
export class DeploymentStarter implements Component {
  readonly name = "deployment-starter";
  private readonly waking: Loop;
  private readonly inFlight = new Set<Promise<unknown>>();
  /** Where the next sweep goes on with deployments that could grow. */
  private growAfter = "";

  constructor(private readonly ctx: Context) {
    this.waking = new Loop("deployment-starter", SWEEP_MS, () => this.sweep(), ctx);
  }

  start(): void {
    this.ctx.signals.on("deployment", this.onDeployment);
    this.waking.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("deployment", this.onDeployment);
    await this.waking.stop();
    await Promise.allSettled(this.inFlight);
  }

  /** Right after the commit. Under load the sweep does it. */
  private readonly onDeployment = (deploymentId: string): void => {
    if (this.inFlight.size >= BATCH) return;
    const done: Promise<unknown> = claimDueWakes(
      this.ctx.pool,
      this.ctx.config.outbox.leaseS,
      1,
      deploymentId,
    )
      .then((due) => this.wakeAll(due))
      .catch(() => undefined)
      .finally(() => this.inFlight.delete(done));
    this.inFlight.add(done);
  };

  private async sweep(): Promise<void> {
    // One glance in place of the others: most of the time there is no deployment.
    if (!(await isAnyDeployed(this.ctx.pool))) return;
    // What is owed goes first, and one part that fails keeps no other from running.
    await runEach([
      () => this.wakeDue(),
      async () => {
        const { stopGraceS } = this.ctx.config.deployments;
        const ended = await endOverdueStops(this.ctx.pool, stopGraceS);
        if (ended.length > 0) await this.wakeDue();
      },
      async () => {
        const { asked, next } = await askToGrow(this.ctx.pool, this.growAfter);
        this.growAfter = next;
        if (asked > 0) await this.wakeDue();
      },
    ]);
  }

  private async wakeDue(): Promise<void> {
    for (;;) {
      const due = await claimDueWakes(this.ctx.pool, this.ctx.config.outbox.leaseS, BATCH);
      // With Temporal away each call takes seconds, and overdue stops must not wait for them.
      if (!(await this.wakeAll(due)) || due.length < BATCH) return;
    }
  }

  /** @returns whether all of them were told. */
  private async wakeAll(due: DueWake[]): Promise<boolean> {
    const told = await Promise.all(due.map((wake) => this.wake(wake)));
    return told.every((isTold) => isTold);
  }

  private async wake(wake: DueWake): Promise<boolean> {
    try {
      await wakeDeployment(this.ctx, wake);
      return true;
    } catch (error) {
      const line = { deployment_id: wake.deployment_id, err: reasonOf(error) };
      this.ctx.logger.warn(line, "deployment not nudged");
      return false;
    }
  }
}
