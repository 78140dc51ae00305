import type { MeteredAttempt } from "./metering";
import type { StoredBillingRecord } from "./record";
import { NO_USAGE } from "./usage";

/** What a record adds to its month beside its cost. */
export interface LineUsage {
  gpuHours: number;
  tokens: number;
  /** GPU hours of attempts that the bill leaves out. */
  unbilledGpuHours: number;
}

export function usageOfLine({
  metrics,
  attempts,
}: Pick<StoredBillingRecord, "metrics" | "attempts">): LineUsage {
  // A server of before tokens were told apart may have written the record.
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
