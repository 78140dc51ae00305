import { Decimal } from "decimal.js";
import type { JobType } from "../jobs/job-types";
import { type Portion, priceJob } from "./price-job";
import type { RateCard } from "./rate-card";

/** A deployment's age at the end of a month; in its last month, its age at the stop, or now. */
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
 * Adds a deployment's lifetime, which workers don't report, to the first portion, the usage of the
 * first billed attempt. The other portions get 0, so that the lifetime is billed once.
 */
export const withDays = (portions: readonly Portion[], days: number): Portion[] =>
  portions.map(({ usage, ...rest }, at) => ({
    ...rest,
    usage: { ...usage, deployment_lifetime_days: at === 0 ? days : 0 },
  }));

/**
 * Splits a deployment's bill into the months whose billing line is not written yet. A month's share
 * is the bill at the month's end minus all earlier and all written shares, so the shares add up to
 * the bill exactly. If a month's line was written before the month ended, because of a wrong clock,
 * the rest of the month's cost goes to the next month that has no line yet.
 * @param lived in order, without gaps. The last entry is the deployment's end, or now.
 * @param written shares whose billing line is written. Their sum must be at most the bill.
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
