import { Decimal } from "decimal.js";

/** Spending limits in USD; null: no limit. */
export interface Budget {
  cap_usd: number | null;
  warning_usd: number | null;
}

/** What counts against a budget, in USD. */
export interface Spending {
  /** Billed and accrued so far. */
  spent: Decimal;
  /** Expected cost of running work. */
  committed: Decimal;
}

/** Default warning level, as a fraction of the cap. */
const DEFAULT_WARNING = 0.8;

export const defaultWarning = (cap: number | null): number | null =>
  cap === null ? null : new Decimal(cap).times(DEFAULT_WARNING).toDecimalPlaces(6).toNumber();

export type BudgetState = "ok" | "warning" | "exhausted";

/**
 * Decides whether new work may begin. `exhausted`: the work must not begin. When the cap is already
 * reached, even free work must not begin.
 * @param more expected cost of the new work, in USD.
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

/** Describes the amounts that `judgeBudget` compares, for messages. */
export function explainBudget(
  { cap_usd: cap }: Budget,
  { spent, committed }: Spending,
  more: Decimal.Value = 0,
): string {
  const running = `running work is expected to add ${usd(committed)}`;
  const next = new Decimal(more).isZero() ? "" : `, and this would add ${usd(more)}`;
  return `${usd(spent)} of ${usd(cap ?? 0)} are spent, ${running}${next}`;
}

const usd = (amount: Decimal.Value): string => `${new Decimal(amount).toDecimalPlaces(6)} USD`;
