import { Decimal } from "decimal.js";
import type { JobType } from "../jobs/job-types";
import { type Portion, priceJob } from "./price-job";
import type { RateCard } from "./rate-card";

/**
 * A month, and a deployment's age at the end of this month. In the deployment's last month: its age
 * at the stop, or its current age if it is still running.
 */
export interface LivedUntil {
  /** The month's first day, YYYY-MM-DD, UTC. */
  month: string;
  /** Days since the deployment's start, not since the start of the month. */
  days: number;
}

export interface MonthShare {
  month: string;
  costUsd: string;
}

/**
 * Returns the usage of each attempt, with the deployment's lifetime in the first attempt and 0 in
 * all others. So the lifetime is billed once.
 */
export const withDays = (portions: readonly Portion[], days: number): Portion[] =>
  portions.map(({ usage, ...rest }, at) => ({
    ...rest,
    usage: { ...usage, deployment_lifetime_days: at === 0 ? days : 0 },
  }));

/**
 * Splits a deployment's bill into months. Returns the shares of the months that have no billing
 * line yet. Such a share is the bill up to the month's end, minus two amounts: all shares with a
 * billing line, and the returned shares of earlier months. If the result is negative, the share is
 * 0, and the following shares are smaller instead. So the shares with and without a line add up to
 * the bill exactly.
 *
 * If the clock was wrong, a month's billing line may have been written before the month ended. The
 * rest of that month's cost is then added to the next month that has no line.
 * @param lived the deployment's months, in order, without gaps. The last entry is for the month of
 * the stop, or for the current month.
 * @param written the shares that have a billing line. Their sum must be at most the bill.
 */
export function splitByMonth(
  type: JobType,
  portions: readonly Portion[],
  card: RateCard,
  lived: readonly LivedUntil[],
  written: readonly MonthShare[] = [],
): MonthShare[] {
  const isWritten = (month: string): boolean => written.some((share) => share.month === month);
  let allocated = Decimal.sum(0, ...written.map(({ costUsd }) => costUsd));
  const share = (month: string, days: number): MonthShare => {
    const total = new Decimal(priceJob(type, withDays(portions, days), card).totalCostUsd);
    const costUsd = Decimal.max(0, total.minus(allocated));
    allocated = allocated.plus(costUsd);
    return { month, costUsd: costUsd.toFixed() };
  };
  const shares = lived
    .filter(({ month }) => !isWritten(month))
    .map(({ month, days }) => share(month, days));
  const last = lived.at(-1);
  if (!last || !isWritten(last.month)) return shares;
  let { month } = last;
  while (isWritten(month)) month = monthAfter(new Date(month)).toISOString().slice(0, 10);
  return [...shares, share(month, last.days)];
}

/**
 * The start of the next month.
 * @param start the first moment of a month, UTC.
 */
export function monthAfter(start: Date): Date {
  const next = new Date(start);
  next.setUTCMonth(next.getUTCMonth() + 1);
  return next;
}
