import { Decimal } from "decimal.js";
import { declarationOf, type JobType } from "../jobs/job-types";
import { gpuHours, millions, type Portion, PRICE_FORMULAS, per, type Term } from "./price-formulas";
import { gpuHourPrice, type MeteredCard, type RateCard } from "./rate-card";

export type { Portion } from "./price-formulas";

/** Amounts are decimal strings, so that they reach NUMERIC columns without another rounding. */
export interface Bill {
  unitCosts: Record<string, string>;
  costBreakdown: Record<string, string>;
  totalCostUsd: string;
  formula: string;
}

/** Amounts have a precision of a millionth of a dollar. Halves are rounded away from zero. */
const MONEY_DECIMALS = 6;

/**
 * The only place where money is rounded: once for each line of a bill. Totals are sums of rounded
 * lines, and a month's share is the difference of two totals (accrual.ts).
 */
export const roundUsd = (amount: Decimal): Decimal =>
  amount.toDecimalPlaces(MONEY_DECIMALS, Decimal.ROUND_HALF_UP);

/**
 * Prices a job by its type's formula (price-formulas.ts), or by consumption if the rate card is
 * metered. Each line of the bill is the rounded sum of its terms.
 * @param portions usage of each billed attempt; at least one.
 */
export function priceJob(type: JobType, portions: readonly Portion[], card: RateCard): Bill {
  const formulas = formulasOf(type);
  const terms = portions.flatMap((portion) =>
    card.basis === "metered" ? termsOfUsage(type, portion, card) : [formulas.onWork(portion, card)],
  );
  const lines = Object.fromEntries(LINES.map((line) => [line, new Decimal(0)]));
  for (const { line, amount } of terms) lines[line] = amount.plus(lines[line] ?? 0);
  const breakdown = Object.entries(lines).map(([line, sum]) => [line, roundUsd(sum)] as const);
  const total = Decimal.sum(0, ...breakdown.map(([, sum]) => sum)).toFixed();
  return {
    unitCosts: unitCosts(type, card, portions.at(-1)?.gpu_tokens ?? []),
    costBreakdown: Object.fromEntries(breakdown.map(([line, sum]) => [line, sum.toFixed()])),
    totalCostUsd: total,
    formula: `${terms.map(({ text }) => text).join(" + ")} = ${total} USD`,
  };
}

/** Lines that every bill has. */
const LINES = ["gpu", "generation", "audit", "eval", "deploy"];

const formulasOf = (type: JobType) => PRICE_FORMULAS[declarationOf(type).price];

/** Terms on a metered card: GPU time, tokens, and for a deployment its monthly fee. */
function termsOfUsage(type: JobType, portion: Portion, card: MeteredCard): Term[] {
  const { usage, gpu_tokens: gpu } = portion;
  const extra = formulasOf(type).onMetered?.(portion, card);
  return [
    gpuHours(usage, gpuHourPrice(card, gpu)),
    millions("input_tokens", "input tokens", usage.input_tokens, card.inputPer1mTokens),
    millions("output_tokens", "output tokens", usage.output_tokens, card.outputPer1mTokens),
    ...(extra ? [extra] : []),
  ];
}

function unitCosts(type: JobType, card: RateCard, gpu: readonly string[]): Bill["unitCosts"] {
  const shared = { gpu_hour: gpuHourPrice(card, gpu), deploy_per_month: card.deployPerMonth };
  if (card.basis === "metered") {
    return {
      ...shared,
      // spec.md 2.5 requires the next three prices in every record. A metered card has no such
      // prices, so record 0.
      generation_per_1m_tokens: "0",
      audit_per_1k_rows: "0",
      eval_per_100_samples: "0",
      input_per_1m_tokens: card.inputPer1mTokens,
      output_per_1m_tokens: card.outputPer1mTokens,
      storage_per_gb_month: card.storagePerGbMonth,
    };
  }
  return {
    ...shared,
    generation_per_1m_tokens:
      formulasOf(type).generationPrice?.(card) ?? card.generationPer1mTokens,
    audit_per_1k_rows: card.auditPer1kRows,
    eval_per_100_samples: card.evalPer100Samples,
  };
}

/**
 * The maximum of a bill, far above any real one. Sums of many bills of this size fit their database
 * columns, and JSON numbers of this size still hold millionths of a dollar.
 */
export const MAX_BILL_USD = 1e9;

/** A GB-month is 10^9 bytes kept for a whole calendar month. */
export const priceStorage = (gbMonths: Decimal.Value, card: RateCard): Decimal =>
  card.basis === "metered" ? roundUsd(per(gbMonths, 1, card.storagePerGbMonth)) : new Decimal(0);
