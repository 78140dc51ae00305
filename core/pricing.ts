import { Decimal } from "decimal.js";
import type { JobType } from "./job-types";

/** Prices in USD. A record keeps the name of the card it was computed with. */
export interface RateCard {
  name: string;
  generationPer1mTokens: string;
  auditPer1kRows: string;
  evalPer100Samples: string;
  deployPerMonth: string;
  /** Per GPU hour, by a token of the GPU's name; `default` for any other. */
  gpuHour: { default: string } & Record<string, string>;
}

/** spec.md 2.5's default prices; contract.md's for GPUs. */
export const DEFAULT_RATE_CARD: RateCard = {
  name: "default",
  generationPer1mTokens: "0.30",
  auditPer1kRows: "0.20",
  evalPer100Samples: "0.10",
  deployPerMonth: "2",
  gpuHour: { a100: "1.25", default: "2.50" },
};

/** Usage numbers that enter a bill; every one finite and not negative. */
export interface Usage {
  gpu_hours: number;
  tokens_generated: number;
  rows_processed: number;
  samples_evaluated: number;
  deployment_lifetime_days: number;
}

/** Decimals as text, so that nothing is rounded twice on the way to NUMERIC. */
export interface Bill {
  unitCosts: Record<
    "gpu_hour" | "generation_per_1m_tokens" | "audit_per_1k_rows" | "eval_per_100_samples",
    string
  >;
  costBreakdown: Record<"gpu" | "generation" | "audit" | "eval" | "deploy", string>;
  totalCostUsd: string;
  formula: string;
}

type CostLine = keyof Bill["costBreakdown"];

/** Money is kept to a millionth of a dollar, halves away from zero; rounded here and nowhere else. */
const MONEY_DECIMALS = 6;

function round(amount: Decimal): string {
  return amount.toDecimalPlaces(MONEY_DECIMALS, Decimal.ROUND_HALF_UP).toFixed();
}

/** The price of one GPU hour on a GPU with these name tokens. */
function gpuHourPrice(card: RateCard, tokens: readonly string[]): string {
  const known = Object.keys(card.gpuHour).find((type) => tokens.includes(type));
  return (known && card.gpuHour[known]) || card.gpuHour.default;
}

/** The cost formulas of spec.md 2.5. */
export function priceJob(
  type: JobType,
  usage: Usage,
  card: RateCard,
  gpuTokens: readonly string[] = [],
): Bill {
  const gpuHour = gpuHourPrice(card, gpuTokens);
  const { line, amount, formula } = costOf(type, usage, card, gpuHour);
  const zero: Bill["costBreakdown"] = {
    gpu: "0",
    generation: "0",
    audit: "0",
    eval: "0",
    deploy: "0",
  };
  const total = round(amount);
  return {
    unitCosts: {
      gpu_hour: gpuHour,
      generation_per_1m_tokens: card.generationPer1mTokens,
      audit_per_1k_rows: card.auditPer1kRows,
      eval_per_100_samples: card.evalPer100Samples,
    },
    costBreakdown: { ...zero, [line]: total },
    totalCostUsd: total,
    formula: `${formula} = ${total} USD`,
  };
}

function costOf(
  type: JobType,
  usage: Usage,
  card: RateCard,
  gpuHour: string,
): { line: CostLine; amount: Decimal; formula: string } {
  switch (type) {
    case "generate":
    case "distill":
      return {
        line: "generation",
        amount: per(usage.tokens_generated, 1_000_000, card.generationPer1mTokens),
        formula: `(${usage.tokens_generated} tokens / 1000000) x ${card.generationPer1mTokens}`,
      };
    case "audit":
      return {
        line: "audit",
        amount: per(usage.rows_processed, 1000, card.auditPer1kRows),
        formula: `(${usage.rows_processed} rows / 1000) x ${card.auditPer1kRows}`,
      };
    case "train":
      return {
        line: "gpu",
        amount: per(usage.gpu_hours, 1, gpuHour),
        formula: `${usage.gpu_hours} GPU hours x ${gpuHour}`,
      };
    case "evaluate":
      return {
        line: "eval",
        amount: per(usage.samples_evaluated, 100, card.evalPer100Samples),
        formula: `(${usage.samples_evaluated} samples / 100) x ${card.evalPer100Samples}`,
      };
    case "deploy":
      return {
        line: "deploy",
        amount: per(usage.deployment_lifetime_days, 30, card.deployPerMonth),
        formula: `${card.deployPerMonth} per month x (${usage.deployment_lifetime_days} days / 30.0)`,
      };
  }
}

function per(quantity: number, unit: number, price: string): Decimal {
  return new Decimal(quantity).times(price).div(unit);
}
