import { runEach } from "../../platform/concurrency/run-each";
import type { Context } from "../context";
import { LoopComponent } from "../loop-component";
import { closeMonths } from "./close-months";
import { advanceOpenMonths } from "./storage-months";

/** A month's lines are written at most this long after the month is closed. */
const INTERVAL_MS = 600_000;

export class MonthCloser extends LoopComponent {
  constructor(ctx: Context) {
    super(ctx, "month closer", INTERVAL_MS, "close months");
  }

  protected async run(): Promise<void> {
    const close = async (): Promise<void> => {
      while ((await closeMonths(this.ctx)) > 0);
    };
    await runEach([() => advanceAll(this.ctx), close]);
  }
}

/**
 * Advances the `open_month` of all tenants (storage-months.ts), so that `closeMonths` reads only tenants with missing
 * lines. Fails while it is unknown whether the clock was set.
 */
async function advanceAll({ clockWatch }: Context): Promise<void> {
  const options = { requireKnownClock: true };
  let after = "";
  do {
    const from = after;
    after = await clockWatch.transaction((db) => advanceOpenMonths(db, from), options);
  } while (after !== "");
}
