import type { JobType } from "../jobs/job-types";
import { withDays } from "./accrual";
import type { WorkDetails } from "./details";
import type { MeteredAttempt } from "./metering";
import { type Bill, type Portion, priceJob } from "./price-job";
import type { RateCard } from "./rate-card";
import type { BillingRecord } from "./record-schema";
import { NO_USAGE, type Usage } from "./usage";

/** Usage of a job: sums over its billed attempts. */
export interface Metrics extends Usage {
  /** Size of the job's artifact in Forge's store, in GB (10^9 bytes). */
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
  /** Empty on old records. */
  attempts: MeteredAttempt[];
  formula: string;
  /** Empty on old records. */
  details: WorkDetails;
  state: "accruing" | "final";
  created_at: Date;
  /** Age of a live deployment, in days. */
  days_so_far?: number | null;
}

/** Sums the usage of the billed attempts. */
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

/** Rounds off floating-point error. */
const sum = (a: number, b: number): number => Number((a + b).toPrecision(15));

type Priced = Pick<StoredBillingRecord, "metrics" | "gpu_tokens" | "attempts">;

/** The input of the price calculation, derived from a record's stored fields only. */
export function portionsOf({ metrics, gpu_tokens: gpu, attempts }: Priced): Portion[] {
  const billed = attempts.filter((attempt) => attempt.billed);
  const { stored_gb: _, gpu_hours_measured: __, ...usage } = metrics;
  const portions = billed.length > 0 ? billed : [{ usage, gpu_tokens: gpu }];
  return withDays(portions, metrics.deployment_lifetime_days);
}

/** Returns the record of a live deployment with the cost so far, and any other record unchanged. */
export function withAccruedCost<Row extends StoredBillingRecord>(row: Row): Row {
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

/** A billing record as in the API and in its file (spec.md 2.5). Amounts are JSON numbers. */
export function presentBillingRecord(row: StoredBillingRecord): BillingRecord {
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

function presentAttempt(metered: MeteredAttempt): BillingRecord["attempts"][number] {
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
