import type { Client } from "@temporalio/client";
import type pg from "pg";
import { Turns } from "../platform/concurrency/turns";
import type { Config } from "../platform/config/config";
import type { Logger } from "../platform/logger";
import { Metrics } from "../platform/metrics/metrics";
import { createPool } from "../platform/postgres/pool";
import { type DatabaseTurns, databaseTurnsOf } from "../platform/postgres/turns";
import { Signals } from "../platform/signals";
import type { ObjectStore } from "../platform/store/object-store";
import { openStore } from "../platform/store/open-store";
import { TenantStores } from "../platform/store/tenant-stores";
import { Tables } from "../platform/tables/tables";
import { createTemporalClient } from "../platform/temporal/client";
import { ParkingLot } from "./accounts/parking";
import { QueueQuota } from "./accounts/queue-quota";
import { ClockWatch } from "./clock/clock-watch";

/** Monotonic time: for measuring waits, never for stored times, which are the database's. */
interface Clock {
  nowMs(): number;
}

/** Everything a handler, an activity or a loop may use. Passed as an argument, never global. */
export interface Context {
  config: Config;
  logger: Logger;
  clock: Clock;
  /** Whether the database's clock is set forward or back. */
  clockWatch: ClockWatch;
  pool: pg.Pool;
  temporal: Client;
  store: ObjectStore;
  /** Buckets of the tenants' own. */
  tenantStores: TenantStores;
  /** What users' and workers' tables hold. */
  tables: Tables;
  signals: Signals;
  /** What this process counts. */
  /**
   * Over the connection of this process's Temporal worker, while it runs: a workflow that is started by it is
   * given to that worker with the answer, without a poll.
   */
  workerTemporal: { client: Client | undefined };
  metrics: Metrics;
  /** Requests that wait for something to happen. */
  parking: ParkingLot;
  /** How much each tenant has in the queue. */
  queueQuota: QueueQuota;
  /** Whose requests use the database now. */
  databaseTurns: DatabaseTurns;
  /** When this process last received a request with a valid key, by `clock`. */
  traffic: { lastRequestMs: number | undefined };
  /** By upload: its parts are put together by one request at a time. */
  uploadTurns: Turns;
  /** By tenant: submissions under a budget are judged one after the other. */
  budgetTurns: Turns;
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
  const store = overrides.store ?? openStore(config.store);
  const metrics = new Metrics(pool);
  const signals = new Signals(pool, config.database.url, logger);
  signals.on("outbox", ({ outcome }) => {
    if (outcome) metrics.attemptsEnded.inc({ outcome });
  });
  return {
    config,
    logger,
    clock: { nowMs: () => performance.now() },
    clockWatch: new ClockWatch(pool, logger),
    pool,
    temporal: createTemporalClient(config.temporal),
    workerTemporal: { client: undefined },
    store,
    tenantStores: new TenantStores(config.store.tenants.buckets, config.store.tenants.addresses),
    tables: new Tables(store, config, logger),
    signals,
    metrics,
    parking: new ParkingLot(pool, signals, config.limits.caps, { logger, metrics }),
    queueQuota: new QueueQuota(pool, config.limits.caps, () => performance.now()),
    databaseTurns: databaseTurnsOf(config.database.poolSize, config.database.timeoutMs),
    traffic: { lastRequestMs: undefined },
    uploadTurns: new Turns(),
    budgetTurns: new Turns(),
    ...overrides,
  };
}

/** Closes what createContext opened, when nobody uses it any more. */
export async function closeContext(ctx: Context): Promise<void> {
  await ctx.signals.stop();
  await ctx.temporal.connection.close().catch(() => undefined);
  await ctx.pool.end();
}
