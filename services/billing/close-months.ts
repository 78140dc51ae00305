import { splitByMonth } from "../../core/billing/accrual";
import { usageOfLine } from "../../core/billing/line-usage";
import { priceStorage } from "../../core/billing/price-job";
import { portionsOf } from "../../core/billing/record";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import { runEach } from "../../platform/concurrency/run-each";
import type { Context } from "../context";
import { lockDeployment } from "../deployments/deployments";
import { LoopComponent } from "../loop-component";
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
import { advanceOpenMonths } from "./storage-months";

/**
 * The interval of the loop. A month is closed one hour after its end (CLOSED_AFTER in lifetime.ts).
 * The first run after that writes the month's billing lines. If a write fails, the next run repeats
 * it.
 */
const INTERVAL_MS = 600_000;

/** The background loop that writes the billing lines of closed months. */
export class MonthCloser extends LoopComponent {
  constructor(ctx: Context) {
    super(ctx, "month closer", INTERVAL_MS, "close months");
  }

  protected async run(): Promise<void> {
    const close = async (): Promise<void> => {
      while ((await closeMonths(this.ctx)) > 0);
    };
    await runEach([() => advanceAll(this.ctx), close]);
  }
}

const BATCH = 100;

/**
 * Writes the missing billing lines of closed months. Each live deployment gets one line per month,
 * with that month's share of its bill. Each tenant gets one line per month for storage. After that,
 * these months don't change. Idempotent; may run in several processes at once. A failed write is
 * logged and doesn't stop the other writes.
 *
 * @returns the number of deployments whose shares were written, plus the number of storage lines
 *   written. If the result is not 0, call again: there may be more to write.
 */
export async function closeMonths(ctx: Context): Promise<number> {
  const { pool, logger } = ctx;
  let written = 0;
  const writeEach = async <T>(
    listAfter: (id: string) => Promise<T[]>,
    idOf: (item: T) => string,
    write: (item: T) => Promise<boolean>,
  ): Promise<void> => {
    // Read all pages, not only the first. Otherwise, if all writes of the first page keep failing,
    // the items of later pages would never be written.
    for (let page = await listAfter(""); page.length > 0; ) {
      for (const item of page) {
        try {
          if (await write(item)) written += 1;
        } catch (error) {
          logger.error({ of: item, err: String(error) }, "failed to close a month");
        }
      }
      page = await listAfter(idOf(page.at(-1) as T));
    }
  };
  await writeEach(
    async (after) => {
      const ids = await listUnwrittenDeployments(pool, BATCH, after);
      return ids.map((deploymentId) => ({ deploymentId }));
    },
    ({ deploymentId }) => deploymentId,
    ({ deploymentId }) => writeShares(ctx, deploymentId),
  );
  await writeEach(
    (after) => listUnwrittenStorage(pool, BATCH, after),
    (storage) => storage.user_id,
    (storage) => writeStorage(ctx, storage),
  );
  if (written > 0) logger.info({ written }, "closed months");
  return written;
}

/**
 * Writes the storage line of a closed month. Throws while it is unknown whether the database's
 * clock was set forward or back. The loop's next run tries again.
 */
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
    // Lock the deployment, because a concurrent stop also writes the missing billing lines.
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

/**
 * Advances each tenant's `open_month`, its first month that may lack a storage line
 * (storage-months.ts), so that `closeMonths` reads only tenants with missing lines. Throws while it
 * is unknown whether the database's clock was set.
 */
async function advanceAll({ clockWatch }: Context): Promise<void> {
  const options = { requireKnownClock: true };
  let after = "";
  do {
    const from = after;
    after = await clockWatch.transaction((db) => advanceOpenMonths(db, from), options);
  } while (after !== "");
}
