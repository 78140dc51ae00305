import { runEach } from "../../platform/concurrency/run-each";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { isAnyDeployed } from "./due-wakes";
import { requestGrowth } from "./growing-deployments";
import { endOverdueStops } from "./placements";

const SWEEP_MS = 1_000;

/**
 * Ends stopping servers that no heartbeat has reported as stopped, and wakes the workflows of deployments that can grow
 * onto idle workers. It is separate from the delivery of wakes, so that neither delays the other.
 */
export class PlacementSweep implements Component {
  readonly name = "placement-sweep";
  private readonly loop: Loop;
  /** The next sweep continues after this deployment id when it looks for deployments that can grow. */
  private growAfter = "";

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("placement-sweep", SWEEP_MS, () => this.sweep(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async sweep(): Promise<void> {
    const { pool, config } = this.ctx;
    // One query instead of two: most of the time there is no deployment.
    if (!(await isAnyDeployed(pool))) return;
    await runEach([
      async () => this.wake(await endOverdueStops(pool, config.deployments.stopGraceS)),
      async () => {
        const { asked, next } = await requestGrowth(pool, this.growAfter);
        this.growAfter = next;
        this.wake(asked);
      },
    ]);
  }

  private wake(deploymentIds: string[]): void {
    for (const id of deploymentIds) this.ctx.signals.emit("deployment", id);
  }
}
