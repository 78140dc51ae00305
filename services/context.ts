import type { Client } from "@temporalio/client";
import type pg from "pg";
import { KeyedMutex } from "../platform/concurrency/keyed-mutex";
import type { Config } from "../platform/config/config";
import type { Logger } from "../platform/logger";
import { Metrics } from "../platform/metrics/metrics";
import {
  type ConnectionQueues,
  createConnectionQueues,
} from "../platform/postgres/connection-queues";
import { createPool } from "../platform/postgres/pool";
import { Signals } from "../platform/signals";
import type { ObjectStore } from "../platform/store/object-store";
import { openStore } from "../platform/store/open-store";
import { TenantStores } from "../platform/store/tenant-stores";
import { Tables } from "../platform/tables/tables";
import { createTemporalClient } from "../platform/temporal/client";
import { QueueQuota } from "./accounts/queue-quota";
import { WaitingRequests } from "./accounts/waiting-requests";
import { ClockWatch } from "./clock/clock-watch";
import { LongPolls } from "./fleet/long-polls";
import { MeasuringSlots } from "./jobs/measuring-slots";
import { StartPace } from "./jobs/start-pace";

/**
 * How many activities of jobs, pipelines and deployments a process runs at a time. Temporal's local
 * activities have a separate limit with the same value.
 */
export const ACTIVITY_SLOTS = 50;

/**
 * Everything that a handler, an activity or a loop may use. Passed as an argument, never global.
 */
export interface Context {
  config: Config;
  logger: Logger;
  /** Monotonic time, to measure waits. Stored times always come from the database's clock. */
  clock: { nowMs(): number };
  /** Detects when somebody sets the database's clock forward or back. */
  clockWatch: ClockWatch;
  pool: pg.Pool;
  temporal: Client;
  store: ObjectStore;
  tenantStores: TenantStores;
  tables: Tables;
  signals: Signals;
  /**
   * A client on the connection of this process's Temporal worker; undefined while that worker does
   * not run. If this client starts a workflow, Temporal's response contains the workflow's first
   * task, and the worker runs the task without polling for it (eager start).
   */
  workerTemporal: { client: Client | undefined };
  metrics: Metrics;
  waitingRequests: WaitingRequests;
  queueQuota: QueueQuota;
  /** Shares the database connections between tenants. */
  connectionQueues: ConnectionQueues;
  /** When this process last received a request with a valid key, in ms of `clock`. */
  traffic: { lastRequestMs: number | undefined };
  measuringSlots: MeasuringSlots;
  /** Keyed by upload: one request at a time assembles an upload's parts. */
  uploadMutex: KeyedMutex;
  /** Keyed by tenant: a tenant's submissions are checked against its budget one at a time. */
  budgetMutex: KeyedMutex;
  startPace: StartPace;
  /** The polls of workers that wait in this process. */
  longPolls: LongPolls;
  /**
   * Tenants that this process knows to have a budget. A budget is never deleted, so entries stay
   * valid. For all other tenants, the database says whether they have one.
   */
  tenantsWithBudget: Set<string>;
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
  signals.on("outbox", (entry) => {
    if (entry.topic === "outcome") metrics.attemptsEnded.inc({ outcome: entry.outcome });
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
    waitingRequests: new WaitingRequests(pool, signals, config.limits.caps, { logger, metrics }),
    queueQuota: new QueueQuota(pool, config.limits.caps, () => performance.now()),
    connectionQueues: createConnectionQueues(config.database.poolSize, config.database.timeoutMs),
    traffic: { lastRequestMs: undefined },
    measuringSlots: new MeasuringSlots({
      perTenant: 0.2 * ACTIVITY_SLOTS,
      total: 0.5 * ACTIVITY_SLOTS,
      totalWithFirst: 0.8 * ACTIVITY_SLOTS,
    }),
    uploadMutex: new KeyedMutex(),
    budgetMutex: new KeyedMutex(),
    startPace: new StartPace(config.outbox.startAfterS, () => performance.now()),
    longPolls: new LongPolls(),
    tenantsWithBudget: new Set(),
    ...overrides,
  };
}

/** Closes what createContext opened. Call when nothing uses the context any more. */
export async function closeContext(ctx: Context): Promise<void> {
  await ctx.signals.stop();
  await ctx.temporal.connection.close().catch(() => undefined);
  await ctx.pool.end();
}
