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
  /** The month's line, where it is written. */
  written: string | null;
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
 * Splits a month of a deployment's bill into days. The days add up to the month's line exactly: the last day takes
 * the difference.
 */
export function splitByDay(deployment: DeploymentMonth): DayShare[] {
  const { month, portions, card, written, daysBefore, lived } = deployment;
  const steps: LivedUntil[] = lived.map(({ day, days }) => ({ month: day, days }));
  const before = daysBefore === null ? [] : [{ month: "", days: daysBefore }];
  const shares = splitByMonth("deploy", portions, card, [...before, ...steps])
    .slice(before.length)
    .map(({ month: day, costUsd }) => ({ day, usd: new Decimal(costUsd) }));
  const last = shares.at(-1);
  if (written === null) return shares;
  let rest = new Decimal(written);
  // The clock was set since: by now's it did not live in this month.
  if (!last) return [{ day: month, usd: rest }];
  for (const share of shares) {
    share.usd = share === last ? rest : Decimal.min(share.usd, rest);
    rest = rest.minus(share.usd);
  }
  return shares;
}
