import type { Context } from "../infra/context";
import { buryExpired, type Expired, listTenantRules } from "../infra/database/artifact-deletion";
import { deleteOldRequests } from "../infra/database/deployment-requests";
import { forgetOldKeys } from "../infra/database/idempotency";
import { deleteOldMetrics } from "../infra/database/job-metrics";
import type { Queryable } from "../infra/database/pool";
import { deleteOldChangeEvents } from "../infra/database/tenant-events";
import { deleteOldSamples } from "../infra/database/worker-samples";
import { Loop } from "../infra/loop";
import { forEachPage, runEach } from "../infra/run-each";
import type { Part } from "../infra/service";

const ROWS = 10_000;
const ARTIFACTS = 100;
/** Ages are in days: they are looked at once in so many sweeps. */
const SWEEPS = 10;

/**
 * Deletes in Postgres what is kept for a time, and no longer than that. Bytes follow with a sweep (sweeper.ts), so a
 * store that is away holds up nothing here. One part that fails keeps no other from running.
 */
export class Retention implements Part {
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
        (after) => this.byAge((db) => buryExpired(db, rule, after, ARTIFACTS)),
        async ({ storage_id: id, is_buried: isBuried }) => {
          if (isBuried) logger.info({ storage_id: id }, "artifact expired");
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
