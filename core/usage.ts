import { InvalidRequest } from "./errors";
import type { Usage } from "./pricing";

const USAGE_FIELDS = [
  "gpu_hours",
  "tokens_generated",
  "rows_processed",
  "samples_evaluated",
  "deployment_lifetime_days",
] as const satisfies readonly (keyof Usage)[];

/** Beyond this a usage number is a fault, not a job. */
const MAX_USAGE = 1e15;

/** Each usage number, from `metrics`, else from `result`, else 0 (contract.md, job_result). */
export function readUsage(
  metrics: Record<string, unknown>,
  result: Record<string, unknown>,
): Usage {
  const read = (field: keyof Usage): number => {
    const source = metrics[field] !== undefined ? "metrics" : "result";
    const value = metrics[field] ?? result[field] ?? 0;
    if (typeof value !== "number" || !Number.isFinite(value) || value < 0 || value > MAX_USAGE) {
      throw new InvalidRequest(
        `"${field}" must be a number from 0 to ${MAX_USAGE}`,
        `${source}.${field}`,
      );
    }
    return value;
  };
  return Object.fromEntries(USAGE_FIELDS.map((field) => [field, read(field)])) as unknown as Usage;
}
