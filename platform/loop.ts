import type { Logger } from "./logger";
import type { Metrics } from "./metrics/metrics";
import type { Component } from "./service";

/** Where a loop reports success and failure. */
export interface LoopReporting {
  logger: Logger;
  metrics: Metrics;
}

/**
 * Runs `work` at an interval. Runs never overlap, and a failure does not stop the loop. Only the
 * first failure and the recovery are logged, so that a long outage does not fill the log.
 */
export class Loop implements Component {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private stopped = true;
  private failing = false;

  constructor(
    readonly name: string,
    private readonly intervalMs: number,
    private readonly work: () => Promise<void>,
    private readonly reporting: LoopReporting,
  ) {}

  start(): void {
    this.stopped = false;
    this.schedule(0);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.running;
  }

  private schedule(delayMs: number): void {
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.running = this.runOnce().finally(() => this.schedule(this.intervalMs));
    }, delayMs);
  }

  private async runOnce(): Promise<void> {
    const { logger, metrics } = this.reporting;
    const loop = this.name;
    try {
      await this.work();
      if (this.failing) logger.info({ loop }, "loop recovered");
      this.failing = false;
      metrics.loopSuccess.set({ loop }, Date.now() / 1000);
    } catch (error) {
      if (!this.failing) logger.warn({ loop, err: String(error) }, "loop failed");
      this.failing = true;
      metrics.loopFailures.inc({ loop });
    }
  }
}
