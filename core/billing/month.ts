import { Decimal } from "decimal.js";
import { DEPLOYMENT_TYPE } from "../deployments/workflow";
import { type LivedUntil, type MonthShare, monthAfter, splitByMonth } from "./accrual";
import { type Portion, priceJob } from "./price-job";
import type { RateCard } from "./rate-card";

/** The bill of a live deployment. */
export interface Accruing {
  portions: Portion[];
  card: RateCard;
  /**
   * The deployment's age at the end of each of its months so far. The last entry is its age now.
   */
  lived: LivedUntil[];
  /** Shares of the months whose billing line is written already. */
  written: MonthShare[];
}

/** A calendar month, UTC. */
export interface MonthBounds {
  /** YYYY-MM. */
  period: string;
  start: Date;
  /** The next month's start. */
  end: Date;
  now: Date;
}

/**
 * The bounds of the given month, by default of the current one.
 * @param period YYYY-MM.
 * @param now ISO 8601, from the database's clock.
 */
export function monthBounds(period: string | undefined, now: string): MonthBounds {
  const name = period ?? now.slice(0, 7);
  const start = new Date(`${name}-01T00:00:00.000Z`);
  return { period: name, start, end: monthAfter(start), now: new Date(now) };
}

const MS_PER_DAY = 86_400_000;

const unwrittenShares = ({ portions, card, lived, written }: Accruing): MonthShare[] =>
  splitByMonth(DEPLOYMENT_TYPE, portions, card, lived, written);

/**
 * The cost of a live deployment in a month whose billing line is not written yet; 0 if it is
 * written.
 * @param month the month's first day.
 */
export const accruedIn = (deployment: Accruing, month: string): Decimal =>
  new Decimal(unwrittenShares(deployment).find((one) => one.month === month)?.costUsd ?? 0);

/**
 * The cost of a live deployment in all months after the given one whose billing line is not written
 * yet. After the current month, this is 0, unless the month's line was written before the month
 * ended, because of a wrong clock: a later month then takes the rest of its cost (`splitByMonth`).
 */
export function accruedAfter(deployment: Accruing, month: string): Decimal {
  const later = unwrittenShares(deployment).filter((one) => one.month > month);
  return Decimal.sum(0, ...later.map(({ costUsd }) => costUsd));
}

/** The cost that a deployment will add to a month unless it is stopped; 0 for a past month. */
export function stillToAccrue(
  { portions, card, lived }: Accruing,
  { start, end, now }: Pick<MonthBounds, "start" | "end" | "now">,
): Decimal {
  const days = lived.at(-1)?.days ?? 0;
  const at = (when: Date): number =>
    days + Math.max(0, when.getTime() - now.getTime()) / MS_PER_DAY;
  const month = "";
  const [, share] = splitByMonth(DEPLOYMENT_TYPE, portions, card, [
    { month, days: at(start) },
    { month, days: at(end) },
  ]);
  return new Decimal(share?.costUsd ?? 0);
}

/** The cost of a deployment that starts now, until the given time. */
export function costOfDeployment(
  portions: Portion[],
  card: RateCard,
  now: Date,
  until: Date,
): Decimal {
  const beginning: Accruing = { portions, card, lived: [{ month: "", days: 0 }], written: [] };
  const atOnce = new Decimal(priceJob(DEPLOYMENT_TYPE, portions, card).totalCostUsd);
  return stillToAccrue(beginning, { start: now, end: until, now }).plus(atOnce);
}

/**
 * Projects a month's job costs at the rate of its days so far. The first day always counts as a
 * whole day, because its first hours say little about the month.
 */
export function projectJobs(spent: Decimal, start: Date, now: Date, end: Date): Decimal {
  const [length, elapsed] = [end, now].map(
    (at) => (at.getTime() - start.getTime()) / MS_PER_DAY,
  ) as [number, number];
  if (elapsed >= length) return spent;
  if (elapsed <= 0) return new Decimal(0);
  return spent.times(length).div(Math.max(1, elapsed));
}
