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
  /** The sum of the month's lines: those of final records, and the written shares of open bills. */
  recordsUsd: Decimal;
  /** The sum of `accruing`. */
  accruingUsd: Decimal;
  /** Live deployments, each with its cost in this month beyond the written shares. */
  accruing: AccruingShare[];
  /** Cost of live deployments so far in later months: 0, unless a wrong clock closed this month early. */
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
  /** The month's records contain no cost of this deployment yet. */
  isNew: boolean;
}

export async function readMonth(
  db: Queryable,
  userId: string,
  bounds: MonthBounds,
  card: RateCard,
): Promise<Month> {
  const first = `${bounds.period}-01`;
  // Read open bills first, so that a bill closed between the two reads counts twice rather than not at all.
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
 * The storage of a month and its cost. If the month's storage line is written, they are those of the line. Otherwise
 * they are computed up to now: the current month is priced by `card`, a past month by the rate card at its end.
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

/** Assumes that jobs and storage continue at the same rate and that deployments are not stopped. */
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
