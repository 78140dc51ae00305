import { splitByMonth } from "../../core/billing/accrual";
import { usageOfLine } from "../../core/billing/line";
import { priceStorage } from "../../core/billing/pricing";
import { portionsOf } from "../../core/billing/record";
import type { Context } from "../context";
import { lockDeployment } from "../deployments/deployments";
import {
  findAccruing,
  insertStorageLine,
  listUnwrittenDeployments,
  listUnwrittenStorage,
  noteClosedDays,
  readStorage,
  type UnwrittenStorage,
} from "./billing-months";
import { insertShares } from "./billing-records";

const BATCH = 100;

/**
 * Writes what months that are over bear of what goes on: the shares of live deployments, and storage. From
 * then on those months stay as they are. Idempotent, and may run in many processes. What can't be written
 * is logged, and keeps nothing else from it.
 *
 * @returns how much was written; another look may find more.
 */
export async function closeMonths(ctx: Context): Promise<number> {
  const { pool, logger } = ctx;
  let written = 0;
  const each = async <T>(items: T[], write: (item: T) => Promise<boolean>): Promise<void> => {
    for (const item of items) {
      try {
        if (await write(item)) written += 1;
      } catch (error) {
        logger.error({ of: item, err: String(error) }, "a month can't be closed");
      }
    }
  };
  const deployments = await listUnwrittenDeployments(pool, BATCH);
  await each(
    deployments.map((deploymentId) => ({ deploymentId })),
    ({ deploymentId }) => writeShares(ctx, deploymentId),
  );
  // Page by page: what can't be written keeps no other tenant's from it.
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page = await listUnwrittenStorage(pool, BATCH, after);
    await each(page, (storage) => writeStorage(ctx, storage));
    after = page.at(-1)?.user_id;
  }
  if (written > 0) logger.info({ written }, "closed months");
  return written;
}

/** Where it can't be told whether the clock was set, it is written later. */
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
    // Its stop writes the rest, and must not at the same time.
    await lockDeployment(db, deploymentId);
    const row = await findAccruing(db, deploymentId);
    if (!row) return false;
    const { lived, written, open } = row;
    const shares = splitByMonth("deploy", portionsOf(row), row.rate_card, lived, written);
    const closed = shares.filter(({ month }) => month < open);
    if (closed.length === 0) return false;
    await noteClosedDays(db, deploymentId, lived.findLast(({ month }) => month < open)?.days ?? 0);
    return (await insertShares(db, row.job_id, closed, usageOfLine(row))) > 0;
  });
}
