import { InvalidRequest } from "../errors";

/** Usage numbers of a bill. All are finite and not negative. */
export interface Usage {
  gpu_hours: number;
  tokens_generated: number;
  input_tokens: number;
  output_tokens: number;
  rows_processed: number;
  samples_evaluated: number;
  deployment_lifetime_days: number;
}

/** Numbers that the control plane counts itself if the worker does not report them. */
export type Countable = "rows_processed" | "samples_evaluated";

/**
 * Usage as the worker reports it. GPU hours that were not reported are null. Rows and samples that
 * were not reported are absent.
 */
export type ReportedUsage = Omit<Usage, "gpu_hours" | Countable> &
  Partial<Pick<Usage, Countable>> & { gpu_hours: number | null };

/**
 * Upper bounds of reported usage. Larger numbers are rejected, so that every bill fits its database
 * column.
 */
const MAX_USAGE: Record<keyof Usage | "tokens_used", number> = {
  gpu_hours: 1e8,
  tokens_generated: 1e15,
  tokens_used: 1e15,
  input_tokens: 1e15,
  output_tokens: 1e15,
  rows_processed: 1e12,
  samples_evaluated: 1e12,
  deployment_lifetime_days: 1e6,
};

export const NO_USAGE: Usage = {
  gpu_hours: 0,
  tokens_generated: 0,
  input_tokens: 0,
  output_tokens: 0,
  rows_processed: 0,
  samples_evaluated: 0,
  deployment_lifetime_days: 0,
};

type Reported = Record<string, unknown>;

/**
 * Reads each number from `metrics`, else from `result` (contract.md, job_result). Output tokens
 * default to `tokens_generated`, input tokens to `tokens_used` minus the output tokens.
 * @throws InvalidRequest naming a field that is not a finite number from 0 to its bound.
 */
export function readUsage(metrics: Reported, result: Reported): ReportedUsage {
  const read = (field: keyof typeof MAX_USAGE): number | null => {
    const value = metrics[field] ?? result[field] ?? null;
    if (value === null || isUsage(field, value)) return value;
    const source = metrics[field] != null ? "metrics" : "result";
    throw new InvalidRequest(
      `"${field}" must be a number from 0 to ${MAX_USAGE[field]}`,
      `${source}.${field}`,
    );
  };
  const generated = read("tokens_generated");
  const output = read("output_tokens") ?? generated ?? 0;
  const used = read("tokens_used") ?? 0;
  return {
    gpu_hours: read("gpu_hours"),
    tokens_generated: generated ?? 0,
    input_tokens: read("input_tokens") ?? Math.max(0, used - output),
    output_tokens: output,
    deployment_lifetime_days: read("deployment_lifetime_days") ?? 0,
    ...present("rows_processed", read("rows_processed")),
    ...present("samples_evaluated", read("samples_evaluated")),
  };
}

/** Omits a null field, because older servers fail on null but treat an absent field as 0. */
const present = <K extends Countable>(field: K, value: number | null): Partial<Pick<Usage, K>> =>
  (value === null ? {} : { [field]: value }) as Partial<Pick<Usage, K>>;

function isUsage(field: keyof typeof MAX_USAGE, value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_USAGE[field];
}

/** Drops invalid numbers: the end of a failed attempt must not be rejected. */
export function readUsageLeniently(metrics: Reported): ReportedUsage {
  const valid = Object.entries(metrics).filter(
    ([field, value]) => Object.hasOwn(MAX_USAGE, field) && isUsage(field as "gpu_hours", value),
  );
  return readUsage(Object.fromEntries(valid), {});
}
