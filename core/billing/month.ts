import { Decimal } from "decimal.js";
import { DEPLOYMENT_TYPE } from "../deployments/workflow";
import { type LivedUntil, type MonthShare, monthAfter, splitByMonth } from "./accrual";
import { type Portion, priceJob } from "./price-job";
import type { RateCard } from "./rate-card";

/** Input for computing the cost of a live deployment. */
export interface Accruing {
  portions: Portion[];
  card: RateCard;
  /**
   * The deployment's age at the end of each of its months so far. The last entry is its age now.
   */
  lived: LivedUntil[];
  /** The shares of the months that already have a billing line. */
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
 * The cost of a live deployment in a month; 0 if the month's billing line is already written.
 * @param month the month's first day.
 */
export const accruedIn = (deployment: Accruing, month: string): Decimal =>
  new Decimal(unwrittenShares(deployment).find((one) => one.month === month)?.costUsd ?? 0);

/**
 * The cost so far of a live deployment in the months after `month`, except months that already have
 * a billing line. Usually 0 if `month` is the current month. The cost can be more than 0 if a wrong
 * clock caused the current month's line to be written too early: `splitByMonth` then assigns the
 * rest of the current month's cost to a later month, although that month has not begun.
 */
export function accruedAfter(deployment: Accruing, month: string): Decimal {
  const later = unwrittenShares(deployment).filter((one) => one.month > month);
  return Decimal.sum(0, ...later.map(({ costUsd }) => costUsd));
}

/** The cost that a deployment will still add to a month if it keeps running; 0 in past months. */
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
 * Projects the job costs of a whole month from the average cost per day so far. Always assumes that
 * at least one day has passed, because a month's first hours say little about its cost.
 */
export function projectJobs(spent: Decimal, start: Date, now: Date, end: Date): Decimal {
  const [length, elapsed] = [end, now].map(
    (at) => (at.getTime() - start.getTime()) / MS_PER_DAY,
  ) as [number, number];
  if (elapsed >= length) return spent;
  if (elapsed <= 0) return new Decimal(0);
  return spent.times(length).div(Math.max(1, elapsed));
}
