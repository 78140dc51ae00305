import { runEach } from "../../platform/concurrency/run-each";
import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import { requestGrowth } from "./growing-deployments";
import { endOverdueStops } from "./placements";
import { isAnyDeployed } from "./workflow-wakes";

const SWEEP_MS = 1_000;

/**
 * Ends placements whose servers should have stopped, but whose end no heartbeat has reported. Wakes
 * the workflows of deployments that can grow onto idle workers. This loop is separate from the
 * courier that delivers wakes, so that neither delays the other.
 */
export class PlacementSweep extends LoopComponent {
  /** The next sweep looks for deployments that can grow among those with a greater id than this. */
  private growAfter = "";

  constructor(ctx: Context) {
    super(ctx, "placement-sweep", SWEEP_MS);
  }

  protected async run(): Promise<void> {
    const { pool, config } = this.ctx;
    // Usually nothing is deployed: then this is the only query.
    if (!(await isAnyDeployed(pool))) return;
    await runEach([
      async () => this.wake(await endOverdueStops(pool, config.deployments.stopGraceS)),
      async () => {
        const { wokenIds, next } = await requestGrowth(pool, this.growAfter);
        this.growAfter = next;
        this.wake(wokenIds);
      },
    ]);
  }

  private wake(deploymentIds: string[]): void {
    for (const id of deploymentIds) this.ctx.signals.emit("deployment", id);
  }
}
