import type { JobType } from "./job-types";
import type { Bill, Usage } from "./pricing";

export interface StoredBillingRecord {
  job_id: string;
  user_id: string;
  job_type: JobType;
  metrics: Usage;
  unit_costs: Bill["unitCosts"];
  cost_breakdown: Bill["costBreakdown"];
  total_cost_usd: number;
  rate_card: { name: string };
  formula: string;
  state: string;
  created_at: Date;
}

/** A billing record as the API and its file show it (spec.md 2.5): money as JSON numbers. */
export function presentBillingRecord(row: StoredBillingRecord): Record<string, unknown> {
  return {
    job_id: row.job_id,
    user_id: row.user_id,
    job_type: row.job_type,
    metrics: row.metrics,
    unit_costs: numbers(row.unit_costs),
    cost_breakdown: numbers(row.cost_breakdown),
    total_cost_usd: row.total_cost_usd,
    state: row.state,
    rate_card: row.rate_card.name,
    formula: row.formula,
    created_at: row.created_at.toISOString(),
  };
}

function numbers(amounts: Record<string, string>): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).map(([name, text]) => [name, Number(text)]));
}
