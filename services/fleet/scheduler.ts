import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import type { LongPolls } from "./long-polls";
import { isAnythingQueued, listAssigned, matchOnce } from "./matching";
import { markProvisioning } from "./provisioning";

const SWEEP_MS = 2_000;

/**
 * Assigns queued attempts to idle workers. Calls of `wake` coalesce: one pass runs and at most one waits. Each
 * call returns the promise of a pass that starts after the call.
 */
export class Scheduler implements Component {
  readonly name = "scheduler";
  private running: Promise<void> | undefined;
  private waiting: Promise<void> | undefined;
  private readonly sweep: Loop;
  /** The requirement group after which the next sweep continues `markProvisioning`. */
  private markAfter = "";

  constructor(
    private readonly ctx: Context,
    private readonly longPolls: LongPolls,
  ) {
    this.sweep = new Loop("scheduler", SWEEP_MS, () => this.sweepOnce(), ctx);
  }

  start(): void {
    this.ctx.signals.on("queue", this.onQueue);
    this.ctx.signals.on("assigned", this.onAssigned);
    this.ctx.signals.on("reconnected", this.onReconnected);
    this.sweep.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("queue", this.onQueue);
    this.ctx.signals.off("assigned", this.onAssigned);
    this.ctx.signals.off("reconnected", this.onReconnected);
    await this.sweep.stop();
    await Promise.allSettled([this.running, this.waiting]);
  }

  /** Runs a pass that starts after this call. */
  wake(): Promise<void> {
    if (!this.running) {
      this.running = this.pass().finally(() => {
        this.running = undefined;
      });
      return this.running;
    }
    this.waiting ??= this.running
      .catch(() => undefined)
      .then(() => {
        this.waiting = undefined;
        return this.wake();
      });
    return this.waiting;
  }

  private readonly onQueue = (): void => {
    // The sweep retries a failed pass.
    this.wake().catch(() => undefined);
  };

  private readonly onAssigned = (workerIds: string[]): void => {
    this.longPolls.wake(workerIds);
  };

  private readonly onReconnected = (): void => {
    this.wakeAssigned().catch(() => undefined);
  };

  private async pass(): Promise<void> {
    const done = this.ctx.metrics.matchSeconds.startTimer();
    try {
      await this.matchAll();
    } finally {
      done();
    }
  }

  private async matchAll(): Promise<void> {
    const { rankedTenants } = this.ctx.config.fleet;
    for (let after = ""; ; ) {
      const { pairs, next, sawAll } = await matchOnce(this.ctx.pool, rankedTenants, after);
      if (pairs.length === 0) {
        if (next === undefined) return;
        after = next;
        continue;
      }
      this.ctx.metrics.assigned.inc(pairs.length);
      const elsewhere = this.longPolls.wake(pairs.map((pair) => pair.worker_id));
      if (elsewhere.length > 0) this.ctx.signals.assigned(elsewhere);
      if (sawAll) return;
    }
  }

  private async sweepOnce(): Promise<void> {
    // Usually the queue is empty, and then neither a pass nor markProvisioning has anything to do.
    const isQueued = await isAnythingQueued(this.ctx.pool);
    if (isQueued) await this.wake();
    await this.wakeAssigned();
    if (isQueued) this.markAfter = await markProvisioning(this.ctx.pool, this.markAfter);
  }

  /** Makes up for missed signals: reads the assignments of all workers whose polls wait in this process. */
  private async wakeAssigned(): Promise<void> {
    const waiting = this.longPolls.workerIds;
    if (waiting.length > 0) this.longPolls.wake(await listAssigned(this.ctx.pool, waiting));
  }
}
