import { Decimal } from "decimal.js";
import { type LivedUntil, type MonthShare, monthAfter, splitByMonth } from "./accrual";
import { type Portion, priceJob } from "./pricing";
import type { RateCard } from "./rate-card";

/** A bill that goes on. */
export interface Accruing {
  portions: Portion[];
  card: RateCard;
  /** How long it had lived at the end of each of its months so far; the last one is now. */
  lived: LivedUntil[];
  /** Shares of months that are written already. */
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

/** The month of this name, or the current one. @param now ISO 8601, by the database's clock. */
export function monthBounds(period: string | undefined, now: string): MonthBounds {
  const asked = period ?? now.slice(0, 7);
  const start = new Date(`${asked}-01T00:00:00.000Z`);
  return { period: asked, start, end: monthAfter(start), now: new Date(now) };
}

const MS_PER_DAY = 86_400_000;

/** What a live deployment has come to in a month, beside what is written of it. @param month its first day. */
export function accruedIn({ portions, card, lived, written }: Accruing, month: string): Decimal {
  const shares = splitByMonth("deploy", portions, card, lived, written);
  return new Decimal(shares.find((one) => one.month === month)?.costUsd ?? 0);
}

/** The same in all later months: where a wrong clock closed this one early, they bear what goes on. */
export function accruedAfter({ portions, card, lived, written }: Accruing, month: string): Decimal {
  const shares = splitByMonth("deploy", portions, card, lived, written);
  const later = shares.filter((one) => one.month > month);
  return Decimal.sum(0, ...later.map(({ costUsd }) => costUsd));
}

/** What it will add to a month from now on, if nobody stops it; nothing to one that is over. */
export function stillToAccrue(
  { portions, card, lived }: Accruing,
  { start, end, now }: Pick<MonthBounds, "start" | "end" | "now">,
): Decimal {
  const days = lived.at(-1)?.days ?? 0;
  const at = (when: Date): number =>
    days + Math.max(0, when.getTime() - now.getTime()) / MS_PER_DAY;
  const month = "";
  const [, share] = splitByMonth("deploy", portions, card, [
    { month, days: at(start) },
    { month, days: at(end) },
  ]);
  return new Decimal(share?.costUsd ?? 0);
}

/** What a deployment that begins now costs until then. */
export function costOfDeployment(
  portions: Portion[],
  card: RateCard,
  now: Date,
  until: Date,
): Decimal {
  const beginning: Accruing = { portions, card, lived: [{ month: "", days: 0 }], written: [] };
  const atOnce = new Decimal(priceJob("deploy", portions, card).totalCostUsd);
  return stillToAccrue(beginning, { start: now, end: until, now }).plus(atOnce);
}

/**
 * A month's jobs at the rate of its days so far, the first of them counted whole: an hour into a month says
 * little about it.
 */
export function projectJobs(spent: Decimal, start: Date, now: Date, end: Date): Decimal {
  const [length, elapsed] = [end, now].map(
    (at) => (at.getTime() - start.getTime()) / MS_PER_DAY,
  ) as [number, number];
  if (elapsed >= length) return spent;
  if (elapsed <= 0) return new Decimal(0);
  return spent.times(length).div(Math.max(1, elapsed));
}
