import { Decimal } from "decimal.js";
import type { JobType } from "../jobs/job-types";
import { costOfDeployment } from "./month";
import { MAX_BILL_USD, type Portion, priceJob } from "./pricing";
import type { RateCard } from "./rate-card";
import { NO_USAGE, type Usage } from "./usage";

/** What is known of a job before it is submitted. */
export interface EstimateFacts {
  type: JobType;
  payload: Record<string, unknown>;
  /** What it asks for: GPUs, and words that their name must have. */
  gpuCount: number;
  gpuTokens: string[];
  /** Of its dataset, where that is registered. */
  rows: number | null;
  /** What jobs of its type used lately, and of what payloads. */
  history: { usage: Usage; gpu_tokens: string[]; payload: Record<string, unknown> }[];
  card: RateCard;
  now: Date;
  /** Of a deployment the month's share is estimated. */
  monthEnd: Date;
}

export interface Estimate {
  expectedUsd: Decimal;
  lowUsd: Decimal;
  highUsd: Decimal;
  /**
   * `payload`: computed from what is submitted; `history`: from the tenant's jobs of this type, a tenth of
   * which cost less than the low end and a tenth more than the high one; `prior`: from a rule of thumb.
   */
  basis: "payload" | "history" | "prior";
  /** How many jobs it stands on. */
  samples: number;
  /** Of the expected cost. */
  formula: string;
}

/** Rules of thumb where nothing is known: low, expected, high. */
const PRIORS = {
  tokensPerRow: [50, 300, 1_500],
  rows: [100, 1_000, 100_000],
  samples: [50, 200, 5_000],
  gpuHours: [0.1, 1, 24],
} as const;

/** What a job will cost, if its first attempt succeeds. */
export function estimateJob(facts: EstimateFacts): Estimate {
  const { type, card, rows } = facts;
  if (type === "deploy") return estimateDeployment(facts);
  if (type === "audit" && rows !== null && card.basis !== "metered") {
    const portion = portionOf(facts, { rows_processed: rows });
    return estimateOf(facts, [portion, portion, portion], "payload", 0);
  }
  if (facts.history.length > 0) return estimateByHistory(facts);
  const portions = [0, 1, 2].map((at) => portionOf(facts, priorUsage(facts, at as 0 | 1 | 2)));
  return estimateOf(facts, portions, "prior", 0);
}

function estimateDeployment({ gpuTokens, card, now, monthEnd }: EstimateFacts): Estimate {
  const portions = [{ usage: NO_USAGE, gpu_tokens: gpuTokens }];
  const usd = costOfDeployment(portions, card, now, monthEnd);
  const formula = `${card.deployPerMonth} per month of 30 days, from now to ${monthEnd.toISOString()}`;
  return { expectedUsd: usd, lowUsd: usd, highUsd: usd, basis: "payload", samples: 0, formula };
}

/** Each job of before at the size of this one, at the prices of today. */
function estimateByHistory(facts: EstimateFacts): Estimate {
  const { type, payload, history, card, gpuTokens } = facts;
  const priced = history.map((sample) => {
    const by = scaleOf(type, payload) / scaleOf(type, sample.payload);
    const gpu = gpuTokens.length > 0 ? gpuTokens : sample.gpu_tokens;
    const portion = { usage: scale(sample.usage, by), gpu_tokens: gpu };
    return { portion, usd: new Decimal(priceJob(type, [portion], card).totalCostUsd) };
  });
  priced.sort((a, b) => a.usd.comparedTo(b.usd));
  const portions = [0.1, 0.5, 0.9].map((share) => {
    const at = priced[Math.round(share * (priced.length - 1))];
    if (!at) throw new Error("a quantile of nothing");
    return at.portion;
  });
  return estimateOf(facts, portions, "history", history.length);
}

function estimateOf(
  { type, card }: EstimateFacts,
  portions: Portion[],
  basis: Estimate["basis"],
  samples: number,
): Estimate {
  const [low, expected, high] = portions.map((portion) => priceJob(type, [portion], card));
  if (!low || !expected || !high) throw new Error("an estimate has three ends");
  return {
    expectedUsd: Decimal.min(expected.totalCostUsd, MAX_BILL_USD),
    lowUsd: Decimal.min(low.totalCostUsd, MAX_BILL_USD),
    highUsd: Decimal.min(high.totalCostUsd, MAX_BILL_USD),
    basis,
    samples,
    formula: expected.formula,
  };
}

const portionOf = ({ gpuTokens }: EstimateFacts, used: Partial<Usage>): Portion => ({
  usage: { ...NO_USAGE, ...used },
  gpu_tokens: gpuTokens,
});

function priorUsage(
  { type, payload, rows, gpuCount }: EstimateFacts,
  at: 0 | 1 | 2,
): Partial<Usage> {
  const size = type === "generate" ? Number(payload.size) : (rows ?? PRIORS.rows[at]);
  const gpuHours = (type === "train" ? Math.max(1, gpuCount) : gpuCount) * PRIORS.gpuHours[at];
  const tokensOf = (texts: number) => {
    const tokens = Math.round(texts * PRIORS.tokensPerRow[at]);
    return { tokens_generated: tokens, input_tokens: tokens, output_tokens: tokens };
  };
  switch (type) {
    case "generate":
    case "distill":
      return { gpu_hours: gpuHours, ...tokensOf(size) };
    case "evaluate": {
      const samples = PRIORS.samples[at];
      return { gpu_hours: gpuHours, samples_evaluated: samples, ...tokensOf(samples) };
    }
    case "audit":
      return { gpu_hours: gpuHours, rows_processed: size };
    case "train":
    case "deploy":
      return { gpu_hours: gpuHours };
  }
}

/** What a job's usage grows with, as far as its payload says. */
function scaleOf(type: JobType, payload: Record<string, unknown>): number {
  const told = type === "generate" ? payload.size : type === "train" ? payload.epochs : 1;
  return typeof told === "number" && told > 0 ? told : 1;
}

const scale = (usage: Usage, by: number): Usage =>
  Object.fromEntries(
    Object.keys(NO_USAGE).map((field) => [field, (usage[field as keyof Usage] ?? 0) * by]),
  ) as unknown as Usage;
