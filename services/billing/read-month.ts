import { Decimal } from "decimal.js";
import {
  type Accruing,
  accruedAfter,
  accruedIn,
  type MonthBounds,
  projectJobs,
  stillToAccrue,
} from "../../core/billing/month";
import { priceStorage, roundUsd } from "../../core/billing/pricing";
import type { RateCard } from "../../core/billing/rate-card";
import { portionsOf } from "../../core/billing/record";
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

/** What a tenant's month has come to, whichever way it is looked at. */
export interface Month {
  types: MonthTotal[];
  /** Of records that are final. */
  recordsUsd: Decimal;
  accruingUsd: Decimal;
  /** Live deployments, and what each has come to in this month beyond what is written. */
  accruing: AccruingShare[];
  /** What they have come to in later months: where a wrong clock closed this one early. */
  accruingLaterUsd: Decimal;
  /** What live deployments add until the month's end. */
  toAccrueUsd: Decimal;
  gbMonths: number;
  storageUsd: Decimal;
  /** By which storage is priced. */
  storageCard: RateCard;
  /** Records, what accrues and storage: the invoice so far. */
  totalUsd: Decimal;
  forecastUsd: Decimal;
}

interface AccruingShare extends Pick<AccruingRow, "tags" | "pipeline_id"> {
  usd: Decimal;
  /** None of it is in the month's records yet. */
  isNew: boolean;
}

export async function readMonth(
  db: Queryable,
  userId: string,
  bounds: MonthBounds,
  card: RateCard,
): Promise<Month> {
  const first = `${bounds.period}-01`;
  // What goes on first: a bill that is closed between the two counts twice, and never not at all.
  const live = await listAccruing(db, userId, first);
  const types = await readTotals(db, userId, first);

  const stored = await readStored(db, userId, bounds, card);

  const recordsUsd = Decimal.sum(0, ...types.map(({ cost_usd: usd }) => usd));
  const accruing = live.map((row) => ({
    tags: row.tags,
    pipeline_id: row.pipeline_id,
    usd: accruedIn(asAccruing(row), first),
    isNew: !row.written.some(({ month }) => month === first),
  }));
  const accruingUsd = Decimal.sum(0, ...accruing.map(({ usd }) => usd));
  const accruingLaterUsd = Decimal.sum(
    0,
    ...live.map((row) => accruedAfter(asAccruing(row), first)),
  );
  const toAccrueUsd = Decimal.sum(0, ...live.map((row) => stillToAccrue(asAccruing(row), bounds)));
  const { gbMonths, storageUsd, storageCard } = stored;
  return {
    types,
    recordsUsd,
    accruingUsd,
    accruing,
    accruingLaterUsd,
    toAccrueUsd,
    gbMonths,
    storageUsd,
    storageCard,
    totalUsd: recordsUsd.plus(accruingUsd).plus(storageUsd),
    forecastUsd: forecast({ types, accruingUsd, toAccrueUsd, storageUsd }, bounds),
  };
}

/**
 * As it was written when the month was closed; else as it is so far, by the card of today, or, of a month
 * that is over, by the card of its end, as it will be written.
 */
async function readStored(
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

/** Jobs and storage go on as they did; deployments until somebody stops them. */
function forecast(
  month: Pick<Month, "types" | "accruingUsd" | "toAccrueUsd" | "storageUsd">,
  { start, now, end }: MonthBounds,
): Decimal {
  const of = (wanted: (type: string) => boolean): Decimal =>
    Decimal.sum(0, ...month.types.filter(({ value }) => wanted(value)).map((one) => one.cost_usd));
  const running = of((type) => type !== "deploy").plus(month.storageUsd);
  const deployments = of((type) => type === "deploy").plus(month.accruingUsd);
  return roundUsd(projectJobs(running, start, now, end).plus(deployments).plus(month.toAccrueUsd));
}

const asAccruing = (row: AccruingRow): Accruing => ({
  portions: portionsOf(row),
  card: row.rate_card,
  lived: row.lived,
  written: row.written,
});
