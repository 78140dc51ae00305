import { closeMonths } from "../infra/billing/close-months";
import type { Context } from "../infra/context";
import { Loop } from "../infra/loop";
import type { Part } from "../infra/service";

/** A month is closed an hour after its end, and so much later at most. */
const INTERVAL_MS = 600_000;

/** Closes the months of what goes on, in every process; see closeMonths. */
export class MonthCloser implements Part {
  readonly name = "month closer";
  private readonly loop: Loop;

  constructor(ctx: Context) {
    const close = async (): Promise<void> => {
      while ((await closeMonths(ctx)) > 0);
    };
    this.loop = new Loop("close months", INTERVAL_MS, close, ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }
}
