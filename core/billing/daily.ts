import { Decimal } from "decimal.js";
import { type LivedUntil, splitByMonth } from "./accrual";
import type { Portion } from "./pricing";
import type { RateCard } from "./rate-card";

/** A deployment in one month. */
export interface DeploymentMonth {
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
 * the rounding difference.
 */
export function splitByDay(deployment: DeploymentMonth): DayShare[] {
  const { portions, card, written, daysBefore, lived } = deployment;
  const steps: LivedUntil[] = lived.map(({ day, days }) => ({ month: day, days }));
  const before = daysBefore === null ? [] : [{ month: "", days: daysBefore }];
  const shares = splitByMonth("deploy", portions, card, [...before, ...steps])
    .slice(before.length)
    .map(({ month: day, costUsd }) => ({ day, usd: new Decimal(costUsd) }));
  const last = shares.at(-1);
  if (last && written !== null) {
    const others = shares.slice(0, -1).map(({ usd }) => usd);
    last.usd = new Decimal(written).minus(Decimal.sum(0, ...others));
  }
  return shares;
}
