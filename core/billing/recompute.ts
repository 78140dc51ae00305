import { Decimal } from "decimal.js";
import { priceJob } from "./price-job";
import { metricsOf, portionsOf, type StoredBillingRecord } from "./record";

type Compared = Omit<
  StoredBillingRecord,
  "created_at" | "user_id" | "details" | "state" | "days_so_far"
>;

/** Recomputes a bill from its stored record. @returns one line for each number that differs. */
export function compareRecord(record: Compared): string[] {
  const bill = priceJob(record.job_type, portionsOf(record), record.rate_card);
  const differences = [
    ...compare("unit_costs", record.unit_costs, bill.unitCosts),
    ...compare("cost_breakdown", record.cost_breakdown, bill.costBreakdown),
    ...missing(record.cost_breakdown, bill.costBreakdown),
    ...compare(
      "",
      { total_cost_usd: record.total_cost_usd },
      { total_cost_usd: bill.totalCostUsd },
    ),
  ];
  if (record.attempts.length === 0) return differences;
  const { stored_gb: gb, deployment_lifetime_days: days, ...kept } = record.metrics;
  const { stored_gb: _, deployment_lifetime_days: __, ...summed } = metricsOf(record.attempts, gb);
  return [...differences, ...compare("metrics", { ...kept }, { ...summed })];
}

/** Cost lines that the record should have but lacks. */
const missing = (kept: Numbers, computed: Numbers): string[] =>
  Object.entries(computed)
    .filter(([line, usd]) => kept[line] === undefined && !new Decimal(usd).isZero())
    .map(([line, usd]) => `cost_breakdown.${line} is missing; expected ${usd}`);

type Numbers = Record<string, string | number>;

/** Compares only numbers that the record has: old records lack lines that were added later. */
function compare(where: string, kept: Numbers, computed: Numbers): string[] {
  return Object.entries(kept).flatMap(([name, value]) => {
    const expected = computed[name] ?? 0;
    if (new Decimal(value).equals(expected)) return [];
    // A huge amount has more digits than a float can hold. So a stored float also matches if it
    // equals the expected amount rounded to a float.
    if (typeof value === "number" && value === Number(expected)) return [];
    return [`${where === "" ? "" : `${where}.`}${name} is ${value}; expected ${expected}`];
  });
}
