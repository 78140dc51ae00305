import { runEach } from "../../platform/concurrency/run-each";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { closeMonths } from "./close-months";
import { passOverStorageMonths } from "./storage-months";

/** A month is closed an hour after its end, and so much later at most. */
const INTERVAL_MS = 600_000;

/** Closes the months of what goes on, in every process; see closeMonths. */
export class MonthCloser implements Component {
  readonly name = "month closer";
  private readonly loop: Loop;

  constructor(ctx: Context) {
    const close = async (): Promise<void> => {
      while ((await closeMonths(ctx)) > 0);
    };
    const turn = (): Promise<void> => runEach([() => passOverAll(ctx), close]);
    this.loop = new Loop("close months", INTERVAL_MS, turn, ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }
}

/** So that closing months looks only at tenants that lack a line. It waits where the clock is in doubt. */
async function passOverAll({ clockWatch }: Context): Promise<void> {
  let after = "";
  do {
    const from = after;
    after = await clockWatch.transaction((db) => passOverStorageMonths(db, from), {
      requireKnownClock: true,
    });
  } while (after !== "");
}
