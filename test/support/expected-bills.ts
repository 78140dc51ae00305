import { Decimal } from "decimal.js";
import type { Metrics } from "./random-jobs";

/** The prices of spec.md 2.5's tables, written down a second time: what they are checked against. */
const GPU_HOUR = { a100: "1.25", default: "2.50" };
const WORK: Record<string, [field: keyof Metrics, unit: number, price: string]> = {
  generate: ["tokens_generated", 1_000_000, "0.30"],
  distill: ["tokens_generated", 1_000_000, "0.30"],
  audit: ["rows_processed", 1_000, "0.20"],
  evaluate: ["samples_evaluated", 100, "0.10"],
};

export interface Facts {
  type: string;
  card: string;
  /** The name of its worker's GPU. */
  gpu: string;
  measuredHours: number;
  metrics: Metrics;
}

/** What a job comes to whose last attempt reported this, and which was no deployment. */
export function expectedUsd({ type, card, gpu, measuredHours, metrics }: Facts): string {
  const { gpu_hours: told } = metrics;
  const hours = told === undefined || told > measuredHours ? measuredHours : told;
  const usd = (amount: Decimal.Value, unit: number, price: string): Decimal =>
    new Decimal(amount).times(price).div(unit).toDecimalPlaces(6, Decimal.ROUND_HALF_UP);
  if (card === "metered") {
    const output = metrics.output_tokens ?? metrics.tokens_generated ?? 0;
    const input = metrics.input_tokens ?? Math.max(0, (metrics.tokens_used ?? 0) - output);
    const lines = [
      usd(hours, 1, "2.50"),
      usd(input, 1_000_000, "10.00"),
      usd(output, 1_000_000, "30.00"),
    ];
    return Decimal.sum(...lines).toFixed();
  }
  if (type === "train") {
    return usd(hours, 1, /a100/i.test(gpu) ? GPU_HOUR.a100 : GPU_HOUR.default).toFixed();
  }
  const [field, unit, price] = WORK[type] ?? [];
  if (field === undefined) throw new Error(`there is no price for ${type}`);
  return usd(metrics[field] ?? 0, unit ?? 1, price ?? "0").toFixed();
}
