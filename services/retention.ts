import { forEachPage, runEach } from "../platform/concurrency/run-each";
import { Loop } from "../platform/loop";
import type { Queryable } from "../platform/postgres/pool";
import type { Component } from "../platform/service";
import { forgetOldKeys } from "./accounts/idempotency-keys";
import { deleteOldChangeEvents } from "./accounts/tenant-events";
import { type Expired, listTenantRules, markExpiredDeleted } from "./artifacts/artifact-deletion";
import type { Context } from "./context";
import { deleteOldRequests } from "./deployments/deployment-requests";
import { deleteOldSamples } from "./fleet/worker-samples";
import { deleteOldMetrics } from "./jobs/job-metrics";

const ROWS = 10_000;
const ARTIFACTS = 100;
/** Ages are in days: they are looked at once in so many sweeps. */
const SWEEPS = 10;

/**
 * Deletes in Postgres what is kept for a time, and no longer than that. Bytes follow with a sweep (sweeper.ts), so a
 * store that is away holds up nothing here. One part that fails keeps no other from running.
 */
export class Retention implements Component {
  readonly name = "retention";
  private readonly loop: Loop;

  constructor(private readonly ctx: Context) {
    const intervalMs = ctx.config.sweep.intervalS * 1000 * SWEEPS;
    this.loop = new Loop("retention", intervalMs, () => this.apply(), ctx);
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
  }

  private async apply(): Promise<void> {
    await runEach([
      () => this.deleteAll(forgetOldKeys),
      () => this.deleteAll(deleteOldChangeEvents),
      () => this.deleteAll(deleteOldMetrics),
      () => this.deleteAll(deleteOldSamples),
      () => this.deleteAll(deleteOldRequests),
      () => this.applyTenantRules(),
    ]);
  }

  private async deleteAll(
    deleteSome: (db: Queryable, limit: number) => Promise<number>,
  ): Promise<void> {
    while ((await this.byAge((db) => deleteSome(db, ROWS))) === ROWS);
  }

  /** What is too old and still needed is looked at again each time. */
  private async applyTenantRules(): Promise<void> {
    const { pool, logger } = this.ctx;
    const applications = (await listTenantRules(pool)).map((rule) => async () => {
      await forEachPage<Expired>(
        ARTIFACTS,
        (after) => this.byAge((db) => markExpiredDeleted(db, rule, after, ARTIFACTS)),
        async ({ storage_id: id, is_deleted: isDeleted }) => {
          if (isDeleted) logger.info({ storage_id: id }, "artifact expired");
        },
      );
    });
    await runEach(applications);
  }

  /** A transaction whose time decides what is old. It fails while the clock is in doubt; the next turn tries again. */
  private async byAge<T>(work: (db: Queryable) => Promise<T>): Promise<T> {
    return await this.ctx.clockWatch.transaction(work, { requireKnownClock: true });
  }
}
