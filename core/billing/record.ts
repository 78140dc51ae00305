import type { JobType } from "../jobs/job-types";
import { withDays } from "./accrual";
import type { WorkDetails } from "./details";
import type { MeteredAttempt } from "./metering";
import { type Bill, type Portion, priceJob } from "./pricing";
import type { RateCard } from "./rate-card";
import { NO_USAGE, type Usage } from "./usage";

/** What a record tells of its job's usage: sums over the attempts that are billed. */
export interface Metrics extends Usage {
  /** What the job's artifact takes in Forge's store, in GB (10^9 bytes). */
  stored_gb: number;
  gpu_hours_measured: number;
}

export interface StoredBillingRecord {
  job_id: string;
  user_id: string;
  job_type: JobType;
  metrics: Metrics;
  unit_costs: Bill["unitCosts"];
  cost_breakdown: Bill["costBreakdown"];
  total_cost_usd: number;
  rate_card: RateCard;
  gpu_tokens: string[];
  /** Empty on records of before attempts were kept. */
  attempts: MeteredAttempt[];
  formula: string;
  /** Empty on records of before they were kept, so that these are shown as their files have them. */
  details: WorkDetails;
  state: "accruing" | "final";
  created_at: Date;
  /** Of a live deployment: the days so far. */
  days_so_far?: number | null;
}

/** Sums of what is billed. */
export function metricsOf(attempts: readonly MeteredAttempt[], storedBytes: number): Metrics {
  const metrics: Metrics = { ...NO_USAGE, stored_gb: storedBytes / 1e9, gpu_hours_measured: 0 };
  for (const { usage, billed, gpu_hours_measured: measured } of attempts) {
    if (!billed) continue;
    for (const field of Object.keys(NO_USAGE) as (keyof Usage)[]) {
      metrics[field] = sum(metrics[field], usage[field]);
    }
    metrics.gpu_hours_measured = sum(metrics.gpu_hours_measured, measured);
  }
  return metrics;
}

/** Without the dust that binary fractions leave. */
const sum = (a: number, b: number): number => Number((a + b).toPrecision(15));

type Priced = Pick<StoredBillingRecord, "metrics" | "gpu_tokens" | "attempts">;

/** What a record's price is computed from, and computed from again. */
export function portionsOf({ metrics, gpu_tokens: gpu, attempts }: Priced): Portion[] {
  const billed = attempts.filter((attempt) => attempt.billed);
  const { stored_gb: _, gpu_hours_measured: __, ...usage } = metrics;
  const portions = billed.length > 0 ? billed : [{ usage, gpu_tokens: gpu }];
  return withDays(portions, metrics.deployment_lifetime_days);
}

/** A record as it stands; one that goes on, with what it has come to so far. */
export function soFar<Row extends StoredBillingRecord>(row: Row): Row {
  if (row.days_so_far == null) return row;
  const metrics = { ...row.metrics, deployment_lifetime_days: row.days_so_far };
  const bill = priceJob(row.job_type, portionsOf({ ...row, metrics }), row.rate_card);
  return {
    ...row,
    metrics,
    unit_costs: bill.unitCosts,
    cost_breakdown: bill.costBreakdown,
    total_cost_usd: Number(bill.totalCostUsd),
    formula: bill.formula,
  };
}

/** A billing record as the API and its file show it (spec.md 2.5): money as JSON numbers. */
export function presentBillingRecord(row: StoredBillingRecord): Record<string, unknown> {
  return {
    job_id: row.job_id,
    user_id: row.user_id,
    job_type: row.job_type,
    metrics: { ...row.metrics, ...row.details },
    unit_costs: numbers(row.unit_costs),
    cost_breakdown: numbers(row.cost_breakdown),
    total_cost_usd: row.total_cost_usd,
    state: row.state,
    rate_card: row.rate_card.name,
    rate_card_version: row.rate_card.version ?? 1,
    formula: row.formula,
    flags: [...new Set(row.attempts.flatMap(({ billed, flags }) => (billed ? flags : [])))],
    attempts: row.attempts.map(presentAttempt),
    created_at: row.created_at.toISOString(),
  };
}

function presentAttempt(metered: MeteredAttempt): Record<string, unknown> {
  return {
    attempt: metered.attempt,
    outcome: metered.outcome,
    worker_id: metered.worker_id,
    billed: metered.billed,
    gpu_hours: metered.usage.gpu_hours,
    gpu_hours_measured: metered.gpu_hours_measured,
    gpu_hours_reported: metered.gpu_hours_reported,
    flags: metered.flags,
    ...(metered.reported ? { reported: metered.reported } : {}),
  };
}

function numbers(amounts: Record<string, string>): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).map(([name, text]) => [name, Number(text)]));
}
