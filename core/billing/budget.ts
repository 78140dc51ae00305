import { Decimal } from "decimal.js";

/** Bounds of what may be spent, in USD; null: none. */
export interface Budget {
  cap_usd: number | null;
  warning_usd: number | null;
}

/** What counts against a budget, in USD. */
export interface Spending {
  /** Billed, and accrued so far. */
  spent: Decimal;
  /** What is under way is expected to add. */
  committed: Decimal;
}

/** Of the cap, where nothing else is said. */
const DEFAULT_WARNING = 0.8;

export const defaultWarning = (cap: number | null): number | null =>
  cap === null ? null : new Decimal(cap).times(DEFAULT_WARNING).toDecimalPlaces(6).toNumber();

export type BudgetState = "ok" | "warning" | "exhausted";

/**
 * Whether something more may begin. Nothing may once the cap is reached, even if it cost nothing; and
 * nothing that is expected to pass it.
 */
export function judgeBudget(
  { cap_usd: cap, warning_usd: warning }: Budget,
  { spent, committed }: Spending,
  more: Decimal.Value = 0,
): BudgetState {
  const before = spent.plus(committed);
  const after = before.plus(more);
  if (cap !== null && (before.gte(cap) || after.gt(cap))) return "exhausted";
  if (warning !== null && after.gte(warning)) return "warning";
  return "ok";
}

/** The numbers of it, in words. */
export function explainBudget(
  { cap_usd: cap }: Budget,
  { spent, committed }: Spending,
  more: Decimal.Value = 0,
): string {
  const under = `${usd(committed)} are expected of what is under way`;
  const next = new Decimal(more).isZero() ? "" : `, and ${usd(more)} of this`;
  return `${usd(spent)} of ${usd(cap ?? 0)} are spent, ${under}${next}`;
}

const usd = (amount: Decimal.Value): string => `${new Decimal(amount).toDecimalPlaces(6)} USD`;
