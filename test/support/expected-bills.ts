import { Decimal } from "decimal.js";
import type { Metrics } from "./random-jobs";

/**
 * The prices from the tables of spec.md 2.5, written a second time to check the product's prices.
 */
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
  /** The name of the worker's GPU. */
  gpu: string;
  measuredHours: number;
  /** How many seconds the worker had the job. */
  seconds: number;
  /** For a generate job, the number of rows to generate. */
  size: number | null;
  metrics: Metrics;
}

/** Forge bills reported metrics only up to plausible amounts. @returns the billed metrics. */
function plausible({ metrics, seconds, size }: Facts): Metrics {
  const bySize = size === null ? Number.POSITIVE_INFINITY : Math.max(1e8, size * 1e6);
  const tokens = Math.min(Math.max(1e9, 1e6 * seconds), bySize);
  const { tokens_used: used = 0, tokens_generated: generated } = metrics;
  const output = metrics.output_tokens ?? generated ?? 0;
  const input = metrics.input_tokens ?? Math.max(0, used - output);
  return {
    ...metrics,
    tokens_generated: Math.min(tokens, generated ?? 0),
    input_tokens: Math.min(tokens, input),
    output_tokens: Math.min(tokens, output),
    rows_processed: Math.min(Math.max(1e7, 1e6 * seconds), metrics.rows_processed ?? 0),
    samples_evaluated: Math.min(Math.max(1e6, 1e4 * seconds), metrics.samples_evaluated ?? 0),
  };
}

/** The amount of a bill's line: `price` USD per `unit`, rounded half up to six decimal places. */
export const usd = (amount: Decimal.Value, unit: number, price: string): Decimal =>
  new Decimal(amount).times(price).div(unit).toDecimalPlaces(6, Decimal.ROUND_HALF_UP);

/** The expected cost of a job (not a deployment) whose last attempt reported these facts. */
export function expectedUsd(facts: Facts): string {
  const { type, card, gpu, measuredHours } = facts;
  const metrics = plausible(facts);
  const { gpu_hours: reported } = metrics;
  const hours = reported === undefined || reported > measuredHours ? measuredHours : reported;
  if (card === "metered") {
    const { input_tokens: input = 0, output_tokens: output = 0 } = metrics;
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
