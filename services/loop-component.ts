import { Loop } from "../platform/loop";
import type { Component } from "../platform/service";
import type { Context } from "./context";

/** A component that calls `run` at an interval. */
export abstract class LoopComponent implements Component {
  private readonly loop: Loop;

  /** @param loopName name of the loop in logs and metrics. */
  constructor(
    protected readonly ctx: Context,
    readonly name: string,
    intervalMs: number,
    loopName = name,
  ) {
    this.loop = new Loop(loopName, intervalMs, () => this.run(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  protected abstract run(): Promise<void>;
}
