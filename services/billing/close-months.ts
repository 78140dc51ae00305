import { splitByMonth } from "../../core/billing/accrual";
import { priceStorage } from "../../core/billing/bill";
import { usageOfLine } from "../../core/billing/line";
import { portionsOf } from "../../core/billing/record";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { Context } from "../context";
import { lockDeployment } from "../deployments/deployments";
import {
  findAccruing,
  insertStorageLine,
  listUnwrittenDeployments,
  listUnwrittenStorage,
  readStorage,
  recordClosedDays,
  type UnwrittenStorage,
} from "./billing-months";
import { insertShares } from "./billing-records";

const BATCH = 100;

/**
 * Closes past months: writes the shares of live deployments and the storage lines. After that, the months don't change.
 * Idempotent; may run in several processes at once. A failed write is logged and doesn't stop the others.
 *
 * @returns for how many deployments and months of storage lines were written. Unless it is 0, there may be more to
 *   write.
 */
export async function closeMonths(ctx: Context): Promise<number> {
  const { pool, logger } = ctx;
  let written = 0;
  const writeAll = async <T>(items: T[], write: (item: T) => Promise<boolean>): Promise<void> => {
    for (const item of items) {
      try {
        if (await write(item)) written += 1;
      } catch (error) {
        logger.error({ of: item, err: String(error) }, "failed to close a month");
      }
    }
  };
  const ids = await listUnwrittenDeployments(pool, BATCH);
  const deployments = ids.map((deploymentId) => ({ deploymentId }));
  await writeAll(deployments, ({ deploymentId }) => writeShares(ctx, deploymentId));
  // Page by page, so that failed writes don't block other tenants.
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page = await listUnwrittenStorage(pool, BATCH, after);
    await writeAll(page, (storage) => writeStorage(ctx, storage));
    after = page.at(-1)?.user_id;
  }
  if (written > 0) logger.info({ written }, "closed months");
  return written;
}

/** Fails while it is unknown whether the clock was set; the next run retries it. */
async function writeStorage(
  { clockWatch }: Context,
  { user_id: userId, month, card }: UnwrittenStorage,
): Promise<boolean> {
  return await clockWatch.transaction(
    async (db) => {
      const { gb_months: gbMonths } = await readStorage(db, userId, month);
      const usd = priceStorage(gbMonths, card).toFixed();
      return await insertStorageLine(db, userId, month, gbMonths, usd, card);
    },
    { requireKnownClock: true },
  );
}

async function writeShares({ clockWatch }: Context, deploymentId: string): Promise<boolean> {
  return await clockWatch.transaction(async (db) => {
    // The lock keeps out a concurrent stop of the deployment, which writes the remaining shares.
    await lockDeployment(db, deploymentId);
    const row = await findAccruing(db, deploymentId);
    if (!row) return false;
    const { lived, written, open } = row;
    const shares = splitByMonth(DEPLOYMENT_TYPE, portionsOf(row), row.rate_card, lived, written);
    const closed = shares.filter(({ month }) => month < open);
    if (closed.length === 0) return false;
    const days = lived.findLast(({ month }) => month < open)?.days ?? 0;
    await recordClosedDays(db, deploymentId, days);
    return (await insertShares(db, row.job_id, closed, usageOfLine(row))) > 0;
  });
}
