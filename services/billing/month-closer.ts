import { runEach } from "../../platform/concurrency/run-each";
import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import type { Context } from "../context";
import { closeMonths } from "./close-months";
import { advanceOpenMonths } from "./storage-months";

/** A month's lines are written at most this long after `CLOSED_AFTER` has passed. */
const INTERVAL_MS = 600_000;

/** Runs `closeMonths` periodically, in every process. */
export class MonthCloser implements Component {
  readonly name = "month closer";
  private readonly loop: Loop;

  constructor(ctx: Context) {
    const close = async (): Promise<void> => {
      while ((await closeMonths(ctx)) > 0);
    };
    const work = (): Promise<void> => runEach([() => advanceAll(ctx), close]);
    this.loop = new Loop("close months", INTERVAL_MS, work, ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }
}

/**
 * Advances all tenants' open months, so that `closeMonths` reads only tenants with missing lines. Fails while it is
 * unknown whether the clock was set.
 */
async function advanceAll({ clockWatch }: Context): Promise<void> {
  let after = "";
  do {
    const from = after;
    after = await clockWatch.transaction((db) => advanceOpenMonths(db, from), {
      requireKnownClock: true,
    });
  } while (after !== "");
}
