import { InvalidRequest } from "./errors";
import type { Usage } from "./pricing";

/** Beyond its bound a usage number is a fault, not a job; within, every bill fits its column. */
const MAX_USAGE: Record<keyof Usage, number> = {
  gpu_hours: 1e8,
  tokens_generated: 1e15,
  rows_processed: 1e12,
  samples_evaluated: 1e12,
  deployment_lifetime_days: 1e6,
};

export const NO_USAGE: Usage = {
  gpu_hours: 0,
  tokens_generated: 0,
  rows_processed: 0,
  samples_evaluated: 0,
  deployment_lifetime_days: 0,
};

/** Each usage number, from `metrics`, else from `result`, else 0 (contract.md, job_result). */
export function readUsage(
  metrics: Record<string, unknown>,
  result: Record<string, unknown>,
): Usage {
  const read = (field: keyof Usage): number => {
    const source = metrics[field] !== undefined ? "metrics" : "result";
    const value = metrics[field] ?? result[field] ?? 0;
    if (
      typeof value !== "number" ||
      !Number.isFinite(value) ||
      value < 0 ||
      value > MAX_USAGE[field]
    ) {
      throw new InvalidRequest(
        `"${field}" must be a number from 0 to ${MAX_USAGE[field]}`,
        `${source}.${field}`,
      );
    }
    return value;
  };
  return {
    gpu_hours: read("gpu_hours"),
    tokens_generated: read("tokens_generated"),
    rows_processed: read("rows_processed"),
    samples_evaluated: read("samples_evaluated"),
    deployment_lifetime_days: read("deployment_lifetime_days"),
  };
}
