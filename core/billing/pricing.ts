import { Decimal } from "decimal.js";
import type { JobType } from "../jobs/job-types";
import { gpuHourPrice, type MeteredCard, type RateCard, type WorkCard } from "./rate-card";
import type { Usage } from "./usage";

/** What one attempt used, and on what GPU. */
export interface Portion {
  usage: Usage;
  gpu_tokens: readonly string[];
}

/** Decimals as text, so that nothing is rounded twice on the way to NUMERIC. */
export interface Bill {
  unitCosts: Record<string, string>;
  costBreakdown: Record<string, string>;
  totalCostUsd: string;
  formula: string;
}

/** Money is kept to a millionth of a dollar, halves away from zero. */
const MONEY_DECIMALS = 6;

/**
 * The one place where money is rounded: each line of a bill, once. Totals are sums of rounded lines, and
 * the share of a month is the difference of two totals (accrual.ts).
 */
export const roundUsd = (amount: Decimal): Decimal =>
  amount.toDecimalPlaces(MONEY_DECIMALS, Decimal.ROUND_HALF_UP);

interface Term {
  line: string;
  amount: Decimal;
  text: string;
}

/**
 * What a job costs by its rate card: spec.md 2.5's formula of its type, or what was used where the card is
 * metered.
 *
 * @param portions what each attempt that is billed used; at least one.
 */
export function priceJob(type: JobType, portions: readonly Portion[], card: RateCard): Bill {
  const terms = portions.flatMap((portion) =>
    card.basis === "metered"
      ? termsOfUsage(type, portion, card)
      : [termOfWork(type, portion, card)],
  );
  const lines: Record<string, Decimal> = {};
  for (const line of Object.keys(ZERO)) lines[line] = new Decimal(0);
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

const ZERO = { gpu: "0", generation: "0", audit: "0", eval: "0", deploy: "0" };

/** The cost formulas of spec.md 2.5. */
function termOfWork(type: JobType, { usage, gpu_tokens: gpu }: Portion, card: WorkCard): Term {
  switch (type) {
    case "generate":
    case "distill":
      return millions("generation", "tokens", usage.tokens_generated, generationPrice(type, card));
    case "audit":
      return {
        line: "audit",
        amount: per(usage.rows_processed, 1_000, card.auditPer1kRows),
        text: `(${usage.rows_processed} rows / 1000) x ${card.auditPer1kRows}`,
      };
    case "train":
      return gpuHours(usage, gpuHourPrice(card, gpu));
    case "evaluate":
      return {
        line: "eval",
        amount: per(usage.samples_evaluated, 100, card.evalPer100Samples),
        text: `(${usage.samples_evaluated} samples / 100) x ${card.evalPer100Samples}`,
      };
    case "deploy":
      return lifetime(usage, card);
  }
}

/** Every execution's GPU time and tokens; a deployment's monthly fee, where the card has one. */
function termsOfUsage(
  type: JobType,
  { usage, gpu_tokens: gpu }: Portion,
  card: MeteredCard,
): Term[] {
  return [
    gpuHours(usage, gpuHourPrice(card, gpu)),
    millions("input_tokens", "input tokens", usage.input_tokens, card.inputPer1mTokens),
    millions("output_tokens", "output tokens", usage.output_tokens, card.outputPer1mTokens),
    ...(type === "deploy" ? [lifetime(usage, card)] : []),
  ];
}

const generationPrice = (type: JobType, card: WorkCard): string =>
  (type === "distill" ? card.distillPer1mTokens : undefined) ?? card.generationPer1mTokens;

const gpuHours = ({ gpu_hours: hours }: Usage, price: string): Term => ({
  line: "gpu",
  amount: per(hours, 1, price),
  text: `${hours} GPU hours x ${price}`,
});

const millions = (line: string, unit: string, count: number, price: string): Term => ({
  line,
  amount: per(count, 1_000_000, price),
  text: `(${count} ${unit} / 1000000) x ${price}`,
});

const lifetime = ({ deployment_lifetime_days: days }: Usage, card: RateCard): Term => ({
  line: "deploy",
  amount: per(days, 30, card.deployPerMonth),
  text: `${card.deployPerMonth} per month x (${days} days / 30.0)`,
});

function unitCosts(type: JobType, card: RateCard, gpu: readonly string[]): Bill["unitCosts"] {
  const shared = { gpu_hour: gpuHourPrice(card, gpu), deploy_per_month: card.deployPerMonth };
  if (card.basis === "metered") {
    return {
      ...shared,
      // spec.md 2.5 names them of every record; what this card charges is in the others.
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
    generation_per_1m_tokens: generationPrice(type, card),
    audit_per_1k_rows: card.auditPer1kRows,
    eval_per_100_samples: card.evalPer100Samples,
  };
}

/**
 * No bill comes near it but by a fault. Below it, sums of many fit their columns, and JSON's numbers tell
 * every millionth.
 */
export const MAX_BILL_USD = 1e9;

/** A GB-month is 10^9 bytes kept for a whole calendar month. */
export const priceStorage = (gbMonths: Decimal.Value, card: RateCard): Decimal =>
  card.basis === "metered" ? roundUsd(per(gbMonths, 1, card.storagePerGbMonth)) : new Decimal(0);

function per(quantity: Decimal.Value, unit: number, price: string): Decimal {
  return new Decimal(quantity).times(price).div(unit);
}
