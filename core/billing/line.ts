import type { MeteredAttempt } from "./metering";
import type { StoredBillingRecord } from "./record";
import { NO_USAGE } from "./usage";

/** The usage that a record adds to its month's totals. */
export interface LineUsage {
  gpuHours: number;
  tokens: number;
  /** GPU hours of attempts that are not billed. */
  unbilledGpuHours: number;
}

export function usageOfLine({
  metrics,
  attempts,
}: Pick<StoredBillingRecord, "metrics" | "attempts">): LineUsage {
  // Records of old servers don't distinguish input and output tokens.
  const {
    gpu_hours: gpuHours,
    input_tokens: read,
    output_tokens: written,
  } = { ...NO_USAGE, ...metrics };
  return {
    gpuHours,
    tokens: read + written,
    unbilledGpuHours: unbilledHours(attempts),
  };
}

export const unbilledHours = (attempts: readonly MeteredAttempt[]): number =>
  attempts.reduce((sum, { billed, usage }) => sum + (billed ? 0 : usage.gpu_hours), 0);
