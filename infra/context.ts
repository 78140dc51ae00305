import type { Client } from "@temporalio/client";
import type pg from "pg";
import { DEFAULT_RATE_CARD, type RateCard } from "../core/pricing";
import type { Config } from "./config";
import { createPool } from "./database/pool";
import { ParkingLot } from "./http/parking";
import type { Logger } from "./logger";
import { Signals } from "./signals";
import { LocalStore } from "./store/local-store";
import type { ObjectStore } from "./store/object-store";
import { createTemporalClient } from "./temporal";

/** Monotonic time: for measuring waits, never for stored times, which are the database's. */
interface Clock {
  nowMs(): number;
}

/** Everything a handler, an activity or a loop may use. Passed as an argument, never global. */
export interface Context {
  config: Config;
  logger: Logger;
  clock: Clock;
  pool: pg.Pool;
  temporal: Client;
  store: ObjectStore;
  signals: Signals;
  /** Requests that wait for something to happen. */
  parking: ParkingLot;
  rateCard: RateCard;
}

export function createContext(
  config: Config,
  logger: Logger,
  overrides: Partial<Context> = {},
): Context {
  const pool =
    overrides.pool ??
    createPool(
      {
        connectionString: config.database.url,
        max: config.database.poolSize,
        timeoutMs: config.database.timeoutMs,
      },
      logger,
    );
  const signals = new Signals(pool, config.database.url, logger);
  return {
    config,
    logger,
    clock: { nowMs: () => performance.now() },
    pool,
    temporal: createTemporalClient(config.temporal),
    store: new LocalStore(config.storeDir),
    signals,
    parking: new ParkingLot(pool, signals, config.http.maxParked, logger),
    rateCard: DEFAULT_RATE_CARD,
    ...overrides,
  };
}

/** Closes what createContext opened, when nobody uses it any more. */
export async function closeContext(ctx: Context): Promise<void> {
  await ctx.signals.stop();
  await ctx.temporal.connection.close().catch(() => undefined);
  await ctx.pool.end();
}
