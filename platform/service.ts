import type { Logger } from "./logger";

/** A part of a running server. Stop is called once, in the reverse order of start. */
export interface Component {
  name: string;
  start(): Promise<void> | void;
  stop(): Promise<void> | void;
}

/** Parts started in order and stopped in the reverse order. */
export class Service {
  private readonly started: Component[] = [];
  private stopping: Promise<void> | undefined;

  constructor(
    private readonly parts: Component[],
    private readonly logger: Logger,
  ) {}

  async start(): Promise<void> {
    for (const part of this.parts) {
      this.started.push(part);
      await part.start();
    }
  }

  /** May be called twice: a second SIGTERM waits for the first. */
  stop(): Promise<void> {
    this.stopping ??= this.stopParts();
    return this.stopping;
  }

  private async stopParts(): Promise<void> {
    for (const part of this.started.reverse()) {
      try {
        await part.stop();
      } catch (error) {
        this.logger.error({ part: part.name, err: String(error) }, "did not stop cleanly");
      }
    }
  }
}
