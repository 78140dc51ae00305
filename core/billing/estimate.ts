import { Decimal } from "decimal.js";
import { declarationOf, type JobType } from "../jobs/job-types";
import { costOfDeployment } from "./month";
import { MAX_BILL_USD, type Portion, priceJob } from "./price-job";
import type { RateCard } from "./rate-card";
import { NO_USAGE, type Usage } from "./usage";

/** What is known about a job before it is submitted. */
export interface EstimateFacts {
  type: JobType;
  payload: Record<string, unknown>;
  /** The requested GPUs: their number, and words that their name must contain. */
  gpuCount: number;
  gpuTokens: string[];
  /** Rows of the job's dataset; null: the dataset is not registered. */
  rows: number | null;
  /** Usage and payloads of recent jobs of the same type. */
  history: { usage: Usage; gpu_tokens: string[]; payload: Record<string, unknown> }[];
  card: RateCard;
  now: Date;
  /** End of the current month: a deployment is estimated up to this time. */
  monthEnd: Date;
}

export interface Estimate {
  expectedUsd: Decimal;
  lowUsd: Decimal;
  highUsd: Decimal;
  /**
   * `payload`: computed from the submission. `history`: computed from the tenant's earlier jobs of
   * this type; low and high are the 10th and 90th percentiles. `prior`: computed from PRIORS.
   */
  basis: "payload" | "history" | "prior";
  /** Number of earlier jobs that the estimate is based on. */
  samples: number;
  /** How the expected cost was computed. */
  formula: string;
}

/** Assumed usage (low, expected, high) if the tenant has no earlier jobs of the type. */
const PRIORS = {
  tokensPerRow: [50, 300, 1_500],
  rows: [100, 1_000, 100_000],
  samples: [50, 200, 5_000],
  gpuHours: [0.1, 1, 24],
} as const;

/** Estimates a job's cost, assuming that its first attempt succeeds. */
export function estimateJob(facts: EstimateFacts): Estimate {
  const { type, card, rows } = facts;
  const { completion, price } = declarationOf(type);
  if (completion === "deployment") return estimateDeployment(facts);
  if (price === "rows" && rows !== null && card.basis !== "metered") {
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

/** Scales earlier jobs' usage to the size of this job, and prices it with the current card. */
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
    if (!at) throw new Error("there are no values to take a quantile of");
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
  if (!low || !expected || !high) throw new Error("an estimate needs three amounts");
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
  const { usage, requirements } = declarationOf(type);
  const size = usage.rowsWritten?.(payload, rows) ?? rows ?? PRIORS.rows[at];
  const gpuHours = Math.max(requirements?.gpu ?? 0, gpuCount) * PRIORS.gpuHours[at];
  const samples = PRIORS.samples[at];
  const texts = usage.uses.includes("samples") ? samples : size;
  const tokens = Math.round(texts * PRIORS.tokensPerRow[at]);
  const assumed = {
    tokens: { tokens_generated: tokens, input_tokens: tokens, output_tokens: tokens },
    rows: { rows_processed: size },
    samples: { samples_evaluated: samples },
  };
  return Object.assign({ gpu_hours: gpuHours }, ...usage.uses.map((what) => assumed[what]));
}

/** The payload value that usage is proportional to; 1 if the payload has none. */
function scaleOf(type: JobType, payload: Record<string, unknown>): number {
  const { growsWith } = declarationOf(type).usage;
  const size = growsWith === undefined ? 1 : payload[growsWith];
  return typeof size === "number" && size > 0 ? size : 1;
}

const scale = (usage: Usage, by: number): Usage =>
  Object.fromEntries(
    Object.keys(NO_USAGE).map((field) => [field, (usage[field as keyof Usage] ?? 0) * by]),
  ) as unknown as Usage;
