import { Decimal } from "decimal.js";
import type { Outcome } from "../states";
import { NO_USAGE, type ReportedUsage, type Usage } from "./usage";

/** Why a bill does not take what the worker said. */
type Flag = "gpu_hours_over_measured" | "gpu_hours_not_reported";

/** One attempt at a job as its worker reported and the control plane measured it. */
export interface AttemptFacts {
  attempt: number;
  outcome: Outcome;
  worker_id: string | null;
  gpu_tokens: string[];
  /** From its hand-out to its end, times its worker's GPUs. */
  gpu_hours_measured: number;
  usage: Partial<ReportedUsage> | null;
}

/** The same as a billing record keeps it. */
export interface MeteredAttempt extends Omit<AttemptFacts, "usage"> {
  gpu_hours_reported: number | null;
  /** Whether the bill counts it. */
  billed: boolean;
  /** What the bill counts of it: GPU hours within the measured bound. */
  usage: Usage;
  flags: Flag[];
}

/** To the billionth of an hour, as hours are measured; downwards, never above what was. */
const round = (hours: number): number =>
  new Decimal(hours).toDecimalPlaces(9, Decimal.ROUND_DOWN).toNumber();

/**
 * What is taken of an attempt's numbers: the GPU hours that its worker reports, as long as they are no
 * more than what was measured; else what was measured. Preparing a worker comes before its first attempt,
 * and is in none.
 */
export function meterAttempt(facts: AttemptFacts, billed: boolean): MeteredAttempt {
  const { usage: told, gpu_hours_measured: measured, ...rest } = facts;
  const reported = told?.gpu_hours ?? null;
  const flags: Flag[] = [];
  if (reported !== null && reported > measured) flags.push("gpu_hours_over_measured");
  if (reported === null && measured > 0) flags.push("gpu_hours_not_reported");
  return {
    ...rest,
    gpu_hours_measured: measured,
    gpu_hours_reported: reported,
    billed,
    usage: { ...NO_USAGE, ...told, gpu_hours: round(Math.min(reported ?? measured, measured)) },
    flags,
  };
}
