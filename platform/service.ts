import type { Logger } from "./logger";

/** A part of a running server. `stop` is called at most once. */
export interface Component {
  name: string;
  start(): Promise<void> | void;
  stop(): Promise<void> | void;
}

/** Starts components in order and stops them in reverse order. */
export class Service {
  private readonly started: Component[] = [];
  private stopping: Promise<void> | undefined;

  constructor(
    private readonly components: Component[],
    private readonly logger: Logger,
  ) {}

  async start(): Promise<void> {
    for (const component of this.components) {
      this.started.push(component);
      await component.start();
    }
  }

  /** Idempotent: a second call waits for the first. */
  stop(): Promise<void> {
    this.stopping ??= this.stopComponents();
    return this.stopping;
  }

  private async stopComponents(): Promise<void> {
    for (const component of this.started.reverse()) {
      try {
        await component.stop();
      } catch (error) {
        const fields = { component: component.name, err: String(error) };
        this.logger.error(fields, "component did not stop cleanly");
      }
    }
  }
}
