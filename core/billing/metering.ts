import { Decimal } from "decimal.js";
import type { Outcome } from "../states";
import { type UsageBounds, withinBounds } from "./plausible";
import { NO_USAGE, type ReportedUsage, type Usage } from "./usage";

/** Why a bill does not take what the worker said. */
type Flag = "gpu_hours_over_measured" | "gpu_hours_not_reported" | "usage_over_plausible";

/** One attempt at a job as its worker reported and the control plane measured it. */
export interface AttemptFacts {
  attempt: number;
  outcome: Outcome;
  worker_id: string | null;
  gpu_tokens: string[];
  /** From its hand-out to its end, times its worker's GPUs. */
  gpu_hours_measured: number;
  /** From its hand-out to its end. */
  seconds: number;
  usage: Partial<ReportedUsage> | null;
}

/** The same as a billing record keeps it. */
export interface MeteredAttempt extends Omit<AttemptFacts, "usage" | "seconds"> {
  gpu_hours_reported: number | null;
  /** Whether the bill counts it. */
  billed: boolean;
  /** What the bill counts of it: GPU hours within the measured bound, the rest within plausible ones. */
  usage: Usage;
  /** Numbers that were beyond their bounds, as they were reported; absent where none was. */
  reported?: Record<string, number>;
  flags: Flag[];
}

/** To the billionth of an hour, as hours are measured; downwards, never above what was. */
const round = (hours: number): number =>
  new Decimal(hours).toDecimalPlaces(9, Decimal.ROUND_DOWN).toNumber();

/**
 * What is taken of an attempt's numbers: the GPU hours that its worker reports, as long as they are no
 * more than what was measured; else what was measured. Of the others, as much as is plausible. Preparing a worker comes before its first attempt,
 * and is in none.
 */
export function meterAttempt(
  facts: AttemptFacts,
  billed: boolean,
  bounds: UsageBounds,
): MeteredAttempt {
  const { usage: reportedUsage, gpu_hours_measured: measured, seconds: _, ...rest } = facts;
  const { usage: told, cut } = withinBounds(reportedUsage ?? {}, bounds);
  const reported = told.gpu_hours ?? null;
  const flags: Flag[] = [];
  if (reported !== null && reported > measured) flags.push("gpu_hours_over_measured");
  if (reported === null && measured > 0) flags.push("gpu_hours_not_reported");
  const isCut = Object.keys(cut).length > 0;
  if (isCut) flags.push("usage_over_plausible");
  return {
    ...rest,
    ...(isCut ? { reported: cut } : {}),
    gpu_hours_measured: measured,
    gpu_hours_reported: reported,
    billed,
    usage: { ...NO_USAGE, ...told, gpu_hours: round(Math.min(reported ?? measured, measured)) },
    flags,
  };
}
