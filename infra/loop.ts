import type { Logger } from "./logger";

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
    private readonly logger: Logger,
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
    try {
      await this.work();
      if (this.failing) this.logger.info({ loop: this.name }, "works again");
      this.failing = false;
    } catch (error) {
      if (!this.failing) this.logger.warn({ loop: this.name, err: String(error) }, "failing");
      this.failing = true;
    }
  }
}
