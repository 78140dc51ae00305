import { Decimal } from "decimal.js";
import { type LivedUntil, splitByMonth } from "./accrual";
import type { Portion } from "./pricing";
import type { RateCard } from "./rate-card";

/** A deployment in one month. */
export interface DeploymentMonth {
  /** Its first day, YYYY-MM-DD. */
  month: string;
  portions: Portion[];
  card: RateCard;
  /** What the month bears of its bill, written or not. */
  borne: Decimal;
  /** How long it had lived when the month began; null: it began later. */
  daysBefore: number | null;
  /** How long it had lived when each of the month's days ended, or at its stop, or now. */
  lived: { day: string; days: number }[];
}

export interface DayShare {
  day: string;
  usd: Decimal;
}

/**
 * Splits what a month bears of a deployment's bill into days. They add up to it exactly: the last day takes the
 * difference. Where the clock was set, that is not what the month's days come to.
 */
export function splitByDay(deployment: DeploymentMonth): DayShare[] {
  const { month, portions, card, borne, daysBefore, lived } = deployment;
  const steps: LivedUntil[] = lived.map(({ day, days }) => ({ month: day, days }));
  const before = daysBefore === null ? [] : [{ month: "", days: daysBefore }];
  const shares = splitByMonth("deploy", portions, card, [...before, ...steps])
    .slice(before.length)
    .map(({ month: day, costUsd }) => ({ day, usd: new Decimal(costUsd) }));
  const last = shares.at(-1);
  let rest = borne;
  // By the clock as it is now it did not live in this month.
  if (!last) return rest.isZero() ? [] : [{ day: month, usd: rest }];
  for (const share of shares) {
    share.usd = share === last ? rest : Decimal.min(share.usd, rest);
    rest = rest.minus(share.usd);
  }
  return shares;
}
