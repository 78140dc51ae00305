import { Decimal } from "decimal.js";
import type { JobType } from "../jobs/job-types";
import { type Portion, priceJob } from "./pricing";
import type { RateCard } from "./rate-card";

/** How long something had lived when a month ended, or when it did. */
export interface LivedUntil {
  /** The month's first day, YYYY-MM-DD, UTC. */
  month: string;
  /** Since its beginning, not the month's. */
  days: number;
}

export interface MonthShare {
  month: string;
  costUsd: string;
}

/** An attempt's usage with the deployment's lifetime, which its worker does not know. */
export const withDays = (portions: readonly Portion[], days: number): Portion[] =>
  portions.map(({ usage, ...rest }, at) => ({
    ...rest,
    usage: { ...usage, deployment_lifetime_days: at === 0 ? days : 0 },
  }));

/**
 * What each month bears of a deployment's bill, beside what is written: what it had come to at the month's end,
 * less what earlier shares and those that are written bear. So shares add up to the bill to the last digit, however
 * often it is split, and whichever months are written: a wrong clock may have closed a month early. What a written
 * month can't bear any more goes to the next one.
 *
 * @param lived in order, without a gap; the last one is its end, or now.
 * @param written together no more than the bill.
 */
export function splitByMonth(
  type: JobType,
  portions: readonly Portion[],
  card: RateCard,
  lived: readonly LivedUntil[],
  written: readonly MonthShare[] = [],
): MonthShare[] {
  const isWritten = (month: string): boolean => written.some((share) => share.month === month);
  let borne = Decimal.sum(0, ...written.map(({ costUsd }) => costUsd));
  const share = (month: string, days: number): MonthShare => {
    const total = new Decimal(priceJob(type, withDays(portions, days), card).totalCostUsd);
    const costUsd = Decimal.max(0, total.minus(borne));
    borne = borne.plus(costUsd);
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

/** @param start the first moment of a month, UTC. */
export function monthAfter(start: Date): Date {
  const next = new Date(start);
  next.setUTCMonth(next.getUTCMonth() + 1);
  return next;
}
