import type { Context } from "../infra/context";
import { buryExpired, type Expired, listTenantRules } from "../infra/database/artifact-deletion";
import { forgetOldKeys } from "../infra/database/idempotency";
import { deleteOldMetrics } from "../infra/database/job-metrics";
import type { Queryable } from "../infra/database/pool";
import { deleteOldChangeEvents } from "../infra/database/tenant-events";
import { forEachPage, runEach } from "../infra/run-each";

const BATCH = 100;

/** Deletes what is kept for a time. One part that fails keeps no other from running. */
export async function applyRetention(ctx: Context): Promise<void> {
  await runEach([
    () => byAge(ctx, forgetOldKeys),
    () => byAge(ctx, deleteOldChangeEvents),
    () => byAge(ctx, deleteOldMetrics),
    () => applyTenantRules(ctx),
  ]);
}

/** What is too old and still needed is looked at again each time. */
async function applyTenantRules(ctx: Context): Promise<void> {
  const { pool, logger } = ctx;
  const applications = (await listTenantRules(pool)).map((rule) => async () => {
    await forEachPage<Expired>(
      BATCH,
      (after) => byAge(ctx, (db) => buryExpired(db, rule, after, BATCH)),
      async ({ storage_id: id, is_buried: isBuried }) => {
        if (isBuried) logger.info({ storage_id: id }, "artifact expired");
      },
    );
  });
  await runEach(applications);
}

/** A transaction whose time decides what is old. It fails while the clock is in doubt; the next turn tries again. */
const byAge = <T>({ clockWatch }: Context, work: (db: Queryable) => Promise<T>): Promise<T> =>
  clockWatch.transaction(work, { requireKnownClock: true });
