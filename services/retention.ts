import { PagedWork, runEach } from "../platform/concurrency/run-each";
import type { Queryable } from "../platform/postgres/pool";
import { deleteOldIdempotencyKeys } from "./accounts/idempotency-keys";
import { deleteOldChangeEvents } from "./accounts/tenant-events";
import { type Expired, listTenantRules, markExpiredDeleted } from "./artifacts/artifact-deletion";
import type { Context } from "./context";
import { deleteOldRequests } from "./deployments/deployment-requests";
import { deleteOldSamples } from "./fleet/worker-samples";
import { deleteOldMetrics } from "./jobs/job-metrics";
import { LoopComponent } from "./loop-component";

const ROWS = 10_000;
const ARTIFACTS = 100;
/**
 * The interval between two retention runs is the file sweeper's interval times this number.
 * Retention periods are in days, so rare runs are enough.
 */
const SWEEPS = 10;

/**
 * Deletes rows whose retention period is over, and marks expired artifacts as deleted. The file
 * sweeper (file-sweeper.ts) removes the artifacts' files later, so an unavailable store does not
 * block retention. The tasks are independent: if one fails, the others still run.
 */
export class Retention extends LoopComponent {
  constructor(ctx: Context) {
    super(ctx, "retention", ctx.config.sweep.intervalS * 1000 * SWEEPS);
  }

  protected async run(): Promise<void> {
    await runEach([
      () => this.deleteAll(deleteOldIdempotencyKeys),
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
    while ((await this.withKnownClock((db) => deleteSome(db, ROWS))) === ROWS);
  }

  /**
   * Applies the retention rules of all tenants: marks artifacts that are too old as deleted. Skips
   * artifacts that are still in use; the next run checks them again.
   */
  private async applyTenantRules(): Promise<void> {
    const { pool, logger } = this.ctx;
    const applications = (await listTenantRules(pool)).map((rule) => async () => {
      const work = new PagedWork<Expired>(
        ARTIFACTS,
        (after) => this.withKnownClock((db) => markExpiredDeleted(db, rule, after, ARTIFACTS)),
        async ({ storage_id: id, is_deleted: isDeleted }) => {
          if (isDeleted) logger.info({ storage_id: id }, "artifact expired");
        },
      );
      await work.run();
    });
    await runEach(applications);
  }

  /**
   * Runs a transaction that deletes data by its age, according to the database's clock. Throws if
   * it is unknown whether that clock was set forward or back: with a clock that is ahead, the
   * transaction would delete data too early.
   */
  private async withKnownClock<T>(work: (db: Queryable) => Promise<T>): Promise<T> {
    return await this.ctx.clockWatch.transaction(work, { requireKnownClock: true });
  }
}
