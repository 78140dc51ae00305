import { runEach } from "../../platform/concurrency/run-each";
import { Loop } from "../../platform/loop";
import type { Part } from "../../platform/service";
import { reasonOf } from "../../platform/temporal/client";
import type { Context } from "../context";
import { claimNudges, isAnyDeployed, type Nudge } from "./deployment-nudges";
import { wakeDeployment } from "./deployment-workflows";
import { askToGrow } from "./growing-deployments";
import { endOverdueStops } from "./placements";

const SWEEP_MS = 1_000;
const BATCH = 20;

/**
 * Tells the workflows of deployments that there is something to look at, and starts those that do not
 * run. The debt is the deployment's row: it was asked for more often than its workflow was told. It also ends
 * servers that no heartbeat ends. Workflows that are gone, the reconciler finds.
 */
export class DeploymentStarter implements Part {
  readonly name = "deployment-starter";
  private readonly nudging: Loop;
  private readonly inFlight = new Set<Promise<unknown>>();
  /** Where the next sweep goes on with deployments that could grow. */
  private growAfter = "";

  constructor(private readonly ctx: Context) {
    this.nudging = new Loop("deployment-starter", SWEEP_MS, () => this.sweep(), ctx);
  }

  start(): void {
    this.ctx.signals.on("deployment", this.onDeployment);
    this.nudging.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("deployment", this.onDeployment);
    await this.nudging.stop();
    await Promise.allSettled(this.inFlight);
  }

  /** Right after the commit. Under load the sweep does it. */
  private readonly onDeployment = (deploymentId: string): void => {
    if (this.inFlight.size >= BATCH) return;
    const done: Promise<unknown> = claimNudges(
      this.ctx.pool,
      this.ctx.config.outbox.leaseS,
      1,
      deploymentId,
    )
      .then((due) => this.nudgeAll(due))
      .catch(() => undefined)
      .finally(() => this.inFlight.delete(done));
    this.inFlight.add(done);
  };

  private async sweep(): Promise<void> {
    // One glance in place of the others: most of the time there is no deployment.
    if (!(await isAnyDeployed(this.ctx.pool))) return;
    // What is owed goes first, and one part that fails keeps no other from running.
    await runEach([
      () => this.nudgeDue(),
      async () => {
        const { stopGraceS } = this.ctx.config.deployments;
        const ended = await endOverdueStops(this.ctx.pool, stopGraceS);
        if (ended.length > 0) await this.nudgeDue();
      },
      async () => {
        const { asked, next } = await askToGrow(this.ctx.pool, this.growAfter);
        this.growAfter = next;
        if (asked > 0) await this.nudgeDue();
      },
    ]);
  }

  private async nudgeDue(): Promise<void> {
    for (;;) {
      const due = await claimNudges(this.ctx.pool, this.ctx.config.outbox.leaseS, BATCH);
      // With Temporal away each call takes seconds, and overdue stops must not wait for them.
      if (!(await this.nudgeAll(due)) || due.length < BATCH) return;
    }
  }

  /** @returns whether all of them were told. */
  private async nudgeAll(due: Nudge[]): Promise<boolean> {
    const told = await Promise.all(due.map((nudge) => this.nudge(nudge)));
    return told.every((isTold) => isTold);
  }

  private async nudge(nudge: Nudge): Promise<boolean> {
    try {
      await wakeDeployment(this.ctx, nudge);
      return true;
    } catch (error) {
      const line = { deployment_id: nudge.deployment_id, err: reasonOf(error) };
      this.ctx.logger.warn(line, "deployment not nudged");
      return false;
    }
  }
}
