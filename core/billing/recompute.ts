import { Decimal } from "decimal.js";
import { priceJob } from "./pricing";
import { metricsOf, portionsOf, type StoredBillingRecord } from "./record";

type Compared = Omit<
  StoredBillingRecord,
  "created_at" | "user_id" | "details" | "state" | "days_so_far"
>;

/**
 * Computes a record again from what it keeps: its attempts, its metrics and its rate card.
 *
 * @returns one line for each number that differs; none, if the record is right.
 */
export function compareRecord(record: Compared): string[] {
  const bill = priceJob(record.job_type, portionsOf(record), record.rate_card);
  const differences = [
    ...compare("unit_costs", record.unit_costs, bill.unitCosts),
    ...compare("cost_breakdown", record.cost_breakdown, bill.costBreakdown),
    ...extra(record.cost_breakdown, bill.costBreakdown),
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

/** Lines that cost something, and are not kept. */
const extra = (kept: Numbers, computed: Numbers): string[] =>
  Object.entries(computed)
    .filter(([line, usd]) => kept[line] === undefined && !new Decimal(usd).isZero())
    .map(([line, usd]) => `cost_breakdown.${line} is missing, and should be ${usd}`);

type Numbers = Record<string, string | number>;

/** Of the numbers that are kept: a record of before a line was added lacks it. */
function compare(where: string, kept: Numbers, computed: Numbers): string[] {
  return Object.entries(kept).flatMap(([name, value]) => {
    const right = computed[name] ?? 0;
    if (new Decimal(value).equals(right)) return [];
    // A number is no more exact than a float: of ten billions it does not hold the millionths.
    if (typeof value === "number" && value === Number(right)) return [];
    return [`${where === "" ? "" : `${where}.`}${name} is ${value}, and should be ${right}`];
  });
}
