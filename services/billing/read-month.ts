import { Decimal } from "decimal.js";
import {
  type Accruing,
  accruedAfter,
  accruedIn,
  type MonthBounds,
  projectJobs,
  stillToAccrue,
} from "../../core/billing/month";
import { priceStorage, roundUsd } from "../../core/billing/price-job";
import type { RateCard } from "../../core/billing/rate-card";
import { portionsOf } from "../../core/billing/record";
import { DEPLOYMENT_TYPE } from "../../core/deployments/workflow";
import type { Queryable } from "../../platform/postgres/pool";
import {
  type AccruingRow,
  findStorageLine,
  listAccruing,
  type MonthTotal,
  readStorage,
  readTotals,
} from "./billing-months";
import { findRateCardAtEnd } from "./rate-cards";

export interface Month {
  types: MonthTotal[];
  /** The sum of the month's billing lines, without storage. */
  recordsUsd: Decimal;
  /** The sum of `accruing`. */
  accruingUsd: Decimal;
  /** Live deployments, each with its cost in this month that has no billing line yet. */
  accruing: AccruingShare[];
  /**
   * Cost of live deployments in later months that has no billing line yet. For the current month,
   * the amount is usually 0, because no later month has begun. It is more than 0 if a wrong clock
   * caused a deployment's line for the current month to be written too early. Then `splitByMonth`
   * adds the rest of the current month's cost to a later month.
   */
  accruingLaterUsd: Decimal;
  /** Cost that live deployments will add until the month's end. */
  toAccrueUsd: Decimal;
  gbMonths: number;
  storageUsd: Decimal;
  /** The card that storage is priced by. */
  storageCard: RateCard;
  /** The invoice so far: records, accruing cost and storage. */
  totalUsd: Decimal;
  forecastUsd: Decimal;
}

interface AccruingShare extends Pick<AccruingRow, "tags" | "pipeline_id"> {
  usd: Decimal;
  /** True if the month has no billing line of this deployment yet. */
  isNew: boolean;
}

export async function readMonth(
  db: Queryable,
  userId: string,
  bounds: MonthBounds,
  card: RateCard,
): Promise<Month> {
  const first = `${bounds.period}-01`;
  // Read open bills first: a bill that is closed between the two reads is then counted twice, not
  // missed.
  const live = await listAccruing(db, userId, first);
  const types = await readTotals(db, userId, first);
  const storage = await readStorageCost(db, userId, bounds, card);
  const bills = live.map(asAccruing);
  const recordsUsd = Decimal.sum(0, ...types.map(({ cost_usd: usd }) => usd));
  const accruing = live.map((row) => ({
    tags: row.tags,
    pipeline_id: row.pipeline_id,
    usd: accruedIn(asAccruing(row), first),
    isNew: !row.written.some(({ month }) => month === first),
  }));
  const accruingUsd = Decimal.sum(0, ...accruing.map(({ usd }) => usd));
  const month = {
    ...storage,
    types,
    recordsUsd,
    accruingUsd,
    accruing,
    accruingLaterUsd: Decimal.sum(0, ...bills.map((bill) => accruedAfter(bill, first))),
    toAccrueUsd: Decimal.sum(0, ...bills.map((bill) => stillToAccrue(bill, bounds))),
    totalUsd: recordsUsd.plus(accruingUsd).plus(storage.storageUsd),
  };
  return { ...month, forecastUsd: forecast(month, bounds) };
}

/**
 * Reads a month's storage and its cost from the month's storage line. If that line is not written
 * yet, computes both up to now. The current month is priced by `card`, and a past month by the rate
 * card in force at its end.
 */
async function readStorageCost(
  db: Queryable,
  userId: string,
  { period, end, now }: MonthBounds,
  card: RateCard,
): Promise<Pick<Month, "gbMonths" | "storageUsd" | "storageCard">> {
  const month = `${period}-01`;
  const line = await findStorageLine(db, userId, month);
  if (line) {
    const { gb_months: gbMonths, cost_usd: usd, rate_card: storageCard } = line;
    return { gbMonths, storageUsd: new Decimal(usd), storageCard };
  }
  const storageCard = now < end ? card : await findRateCardAtEnd(db, userId, end.toISOString());
  const { gb_months: gbMonths } = await readStorage(db, userId, month);
  return { gbMonths, storageUsd: priceStorage(gbMonths, storageCard), storageCard };
}

/**
 * Forecasts the month's total cost: jobs and storage continue at the same rate, and deployments are
 * not stopped.
 */
function forecast(
  month: Pick<Month, "types" | "accruingUsd" | "toAccrueUsd" | "storageUsd">,
  { start, now, end }: MonthBounds,
): Decimal {
  const of = (wanted: (type: string) => boolean): Decimal =>
    Decimal.sum(0, ...month.types.filter(({ value }) => wanted(value)).map((one) => one.cost_usd));
  const running = of((type) => type !== DEPLOYMENT_TYPE).plus(month.storageUsd);
  const deployments = of((type) => type === DEPLOYMENT_TYPE).plus(month.accruingUsd);
  return roundUsd(projectJobs(running, start, now, end).plus(deployments).plus(month.toAccrueUsd));
}

const asAccruing = (row: AccruingRow): Accruing => ({
  portions: portionsOf(row),
  card: row.rate_card,
  lived: row.lived,
  written: row.written,
});
