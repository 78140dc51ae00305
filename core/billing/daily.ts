import { Decimal } from "decimal.js";
import { DEPLOYMENT_TYPE } from "../deployments/workflow";
import { splitByMonth } from "./accrual";
import type { Portion } from "./price-job";
import type { RateCard } from "./rate-card";

/** One month of a deployment's bill. */
export interface DeploymentMonth {
  /** The month's first day, YYYY-MM-DD. */
  month: string;
  portions: Portion[];
  card: RateCard;
  /** The month's share of the bill, whether or not it has a billing line already. */
  share: Decimal;
  /** The deployment's age in days at the start of the month; null if it started later. */
  daysBefore: number | null;
  /**
   * The deployment's age at the end of each day of the month. The last entry is its age at the
   * stop, or now.
   */
  lived: { day: string; days: number }[];
}

export interface DayShare {
  day: string;
  usd: Decimal;
}

/**
 * Splits a month's share of a deployment's bill into days. The last day gets the remainder, so the
 * days add up to the share exactly. If the database's clock was changed during the month, the last
 * day may get more or less than the cost of one day.
 */
export function splitByDay(deployment: DeploymentMonth): DayShare[] {
  const { month, portions, card, share: ofMonth, daysBefore, lived } = deployment;
  const steps = lived.map(({ day, days }) => ({ month: day, days }));
  const before = daysBefore === null ? [] : [{ month: "", days: daysBefore }];
  const shares = splitByMonth(DEPLOYMENT_TYPE, portions, card, [...before, ...steps])
    .slice(before.length)
    .map(({ month: day, costUsd }) => ({ day, usd: new Decimal(costUsd) }));
  const last = shares.at(-1);
  let rest = ofMonth;
  // If `lived` is empty, the deployment did not exist in this month, so the share is usually 0. If
  // the share is more, for example because the clock was wrong, the month's first day gets it all.
  if (!last) return rest.isZero() ? [] : [{ day: month, usd: rest }];
  for (const share of shares) {
    share.usd = share === last ? rest : Decimal.min(share.usd, rest);
    rest = rest.minus(share.usd);
  }
  return shares;
}
