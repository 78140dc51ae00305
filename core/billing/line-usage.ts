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

type Recorded = Pick<StoredBillingRecord, "metrics" | "attempts">;

export function usageOfLine({ metrics, attempts }: Recorded): LineUsage {
  // Records of earlier releases lack `input_tokens` and `output_tokens`: count them as 0.
  const usage = { ...NO_USAGE, ...metrics };
  return {
    gpuHours: usage.gpu_hours,
    tokens: usage.input_tokens + usage.output_tokens,
    unbilledGpuHours: unbilledHours(attempts),
  };
}

export const unbilledHours = (attempts: readonly MeteredAttempt[]): number =>
  attempts.reduce((sum, { billed, usage }) => sum + (billed ? 0 : usage.gpu_hours), 0);
