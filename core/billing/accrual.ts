import { Decimal } from "decimal.js";
import type { JobType } from "../job-types";
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
 * What each month bears of a deployment's bill: what it had come to at the month's end, less what it had
 * at the one before. So shares add up to the bill to the last digit, however often it is split.
 *
 * @param lived in order, without a gap; the last one is its end, or now.
 */
export function splitByMonth(
  type: JobType,
  portions: readonly Portion[],
  card: RateCard,
  lived: readonly LivedUntil[],
): MonthShare[] {
  let before = new Decimal(0);
  return lived.map(({ month, days }) => {
    const total = new Decimal(priceJob(type, withDays(portions, days), card).totalCostUsd);
    const costUsd = total.minus(before).toFixed();
    before = total;
    return { month, costUsd };
  });
}
