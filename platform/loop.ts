import type { Logger } from "./logger";
import type { Metrics } from "./metrics/metrics";

/** Who hears how a loop does. */
export interface Watchers {
  logger: Logger;
  metrics: Metrics;
}

/**
 * Runs `work` every so often, never twice at once, and goes on after a failure.
 *
 * A loop that failed says so once, and once more when it is well again: an outage of an hour is two
 * lines, not thousands.
 */
export class Loop {
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;
  private stopped = true;
  private failing = false;

  constructor(
    private readonly name: string,
    private readonly intervalMs: number,
    private readonly work: () => Promise<void>,
    private readonly watchers: Watchers,
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
    const { logger, metrics } = this.watchers;
    const loop = this.name;
    try {
      await this.work();
      if (this.failing) logger.info({ loop }, "works again");
      this.failing = false;
      metrics.loopSuccess.set({ loop }, Date.now() / 1000);
    } catch (error) {
      if (!this.failing) logger.warn({ loop, err: String(error) }, "failing");
      this.failing = true;
      metrics.loopFailures.inc({ loop });
    }
  }
}
