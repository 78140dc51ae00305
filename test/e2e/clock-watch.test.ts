import { uptime } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Unavailable } from "../../core/errors";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { ClockWatch } from "../../services/clock/clock-watch";
import { type Database, openDatabase } from "../support/database";

let forge: Database;

beforeAll(async () => {
  forge = await openDatabase();
});

afterAll(async () => {
  await forge?.stop();
});

const HOUR_MS = 3_600_000;

test("while a step can't be recorded, bills are still written, and transactions that need a known clock fail soon", async () => {
  const { pool, logger } = forge.ctx;
  let aheadMs = 0;
  const watch = new ClockWatch(pool, logger, () => uptime() * 1_000 + aheadMs, 1_000);
  await watch.check();
  // Advance only the process's own time, so that the database's clock appears to be set back.
  aheadMs = HOUR_MS;
  await transaction(pool, async (db) => {
    await execute(db, "lock table clock_steps in share mode");
    const began = performance.now();
    expect(await watch.transaction(async () => "written")).toBe("written");
    const needy = watch.transaction(async () => "written", { requireKnownClock: true });
    await expect(needy).rejects.toThrow(Unavailable);
    expect(performance.now() - began).toBeLessThan(20_000);
  });
  await watch.check();
  const [step] = await all<{ by_s: number }>(pool, "select by_s from clock_steps");
  expect(Number(step?.by_s)).toBeCloseTo(-HOUR_MS / 1_000, 0);
  expect(await watch.transaction(async () => "written", { requireKnownClock: true })).toBe(
    "written",
  );
}, 60_000);

test("a transaction that paused while a step was recorded is retried before its commit", async () => {
  const { pool, logger } = forge.ctx;
  const watch = new ClockWatch(pool, logger);
  await watch.check();
  let tries = 0;
  await watch.transaction(
    async (db) => {
      tries += 1;
      await execute(db, "create table written (try integer)");
      await execute(db, "insert into written values ($1)", [tries]);
      if (tries > 1) return;
      // Record a clock step as another process would. Before a process records a step, it waits for
      // open transactions, but at most for MAX_TRANSACTION_MS (5 s). So keep this transaction open
      // for longer.
      await execute(pool, "insert into clock_steps (seen_at, by_s) values (now(), -3600)");
      await sleep(5_100);
    },
    { requireKnownClock: true },
  );
  expect(await all(pool, "select try from written")).toEqual([{ try: 2 }]);
});
