import { Decimal } from "decimal.js";
import { gpuHourPrice, type RateCard, type WorkCard } from "./rate-card";
import type { Usage } from "./usage";

/** Usage of one attempt. `gpu_tokens`: the lower-case words of its GPU's name. */
export interface Portion {
  usage: Usage;
  gpu_tokens: readonly string[];
}

/** One summand of a bill. */
export interface Term {
  /** The bill line that includes the term. */
  line: string;
  amount: Decimal;
  text: string;
}

interface PriceFormulas {
  /** The cost on a rate card with prices by output (spec.md 2.5, table 1). */
  onWork(portion: Portion, card: WorkCard): Term;
  /** What a metered rate card charges in addition to GPU time and tokens. */
  onMetered?(portion: Portion, card: RateCard): Term;
  /** The price of a million generated tokens, if it differs from the card's general price. */
  generationPrice?(card: WorkCard): string;
}

/** The price formulas by name. The field `price` of a job type's declaration is such a name. */
const FORMULAS = {
  generated_tokens: {
    onWork: ({ usage }, card) => generatedTokens(usage, card.generationPer1mTokens),
  },
  distilled_tokens: {
    onWork: ({ usage }, card) => generatedTokens(usage, distillPrice(card)),
    generationPrice: distillPrice,
  },
  rows: {
    onWork: ({ usage: { rows_processed: rows } }, card) => ({
      line: "audit",
      amount: per(rows, 1_000, card.auditPer1kRows),
      text: `(${rows} rows / 1000) x ${card.auditPer1kRows}`,
    }),
  },
  samples: {
    onWork: ({ usage: { samples_evaluated: samples } }, card) => ({
      line: "eval",
      amount: per(samples, 100, card.evalPer100Samples),
      text: `(${samples} samples / 100) x ${card.evalPer100Samples}`,
    }),
  },
  gpu_hours: {
    onWork: ({ usage, gpu_tokens: gpu }, card) => gpuHours(usage, gpuHourPrice(card, gpu)),
  },
  monthly: { onWork: lifetime, onMetered: lifetime },
} as const satisfies Record<string, PriceFormulas>;

export type PriceFormulaName = keyof typeof FORMULAS;

export const PRICE_FORMULAS: Record<PriceFormulaName, PriceFormulas> = FORMULAS;

function distillPrice(card: WorkCard): string {
  return card.distillPer1mTokens ?? card.generationPer1mTokens;
}

const generatedTokens = (usage: Usage, price: string): Term =>
  millions("generation", "tokens", usage.tokens_generated, price);

export const gpuHours = ({ gpu_hours: hours }: Usage, price: string): Term => ({
  line: "gpu",
  amount: per(hours, 1, price),
  text: `${hours} GPU hours x ${price}`,
});

export const millions = (line: string, unit: string, count: number, price: string): Term => ({
  line,
  amount: per(count, 1_000_000, price),
  text: `(${count} ${unit} / 1000000) x ${price}`,
});

function lifetime({ usage }: Portion, { deployPerMonth }: RateCard): Term {
  const { deployment_lifetime_days: days } = usage;
  const text = `${deployPerMonth} per month x (${days} days / 30.0)`;
  return { line: "deploy", amount: per(days, 30, deployPerMonth), text };
}

/** The exact price of a quantity; not rounded. */
export const per = (quantity: Decimal.Value, unit: number, price: string): Decimal =>
  new Decimal(quantity).times(price).div(unit);
