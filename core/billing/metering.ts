import { Decimal } from "decimal.js";
import { declarationOf, type JobType } from "../jobs/job-types";
import type { Outcome } from "../jobs/states";
import { type UsageBounds, withinBounds } from "./plausible";
import { type Countable, NO_USAGE, type ReportedUsage, type Usage } from "./usage";

/** Why a bill differs from the usage that the worker reported. */
type Flag =
  | "gpu_hours_over_measured"
  | "gpu_hours_not_reported"
  | "rows_not_reported"
  | "samples_not_reported"
  | "usage_over_plausible";

/** An attempt's rows and samples, counted by the control plane; null: unknown. */
export type Counted = Record<Countable, number | null>;

/**
 * Counts the rows or samples of a completed attempt. The job type's declaration says which of them
 * is counted.
 */
export function countOf({ type, params, rowsRead, rowsMade }: CountFacts): Counted {
  // The reference handler reads at most `limit` rows of a benchmark, so at most `limit` are
  // counted.
  const limit = typeof params.limit === "number" && params.limit >= 0 ? params.limit : Infinity;
  const { counts } = declarationOf(type).usage;
  const counted: Counted = {
    rows_processed: rowsRead ?? rowsMade,
    samples_evaluated: rowsRead === null ? null : Math.min(rowsRead, limit),
  };
  return counts ? { ...NOTHING_COUNTED, [counts]: counted[counts] } : NOTHING_COUNTED;
}

interface CountFacts {
  type: JobType;
  params: Record<string, unknown>;
  /** The number of rows in the job's input dataset; null: unknown. */
  rowsRead: number | null;
  /** The number of rows in the table that the job created; null: there is no readable table. */
  rowsMade: number | null;
}

export const NOTHING_COUNTED: Counted = { rows_processed: null, samples_evaluated: null };

/** One attempt: its usage as reported by the worker, and its time as measured by Forge. */
export interface AttemptFacts {
  attempt: number;
  outcome: Outcome;
  worker_id: string | null;
  gpu_tokens: string[];
  /** Time from dispatch to end, in hours, times the number of the worker's GPUs. */
  gpu_hours_measured: number;
  /** Time from dispatch to end. */
  seconds: number;
  usage: Partial<ReportedUsage> | null;
}

/** One attempt as stored in a billing record. */
export interface MeteredAttempt extends Omit<AttemptFacts, "usage" | "seconds"> {
  gpu_hours_reported: number | null;
  /** Whether the bill includes the attempt. */
  billed: boolean;
  /** Metered usage, see `meterAttempt`. Also set if `billed` is false. */
  usage: Usage;
  /** Reported values of the numbers that exceeded their bounds; absent if none did. */
  reported?: Record<string, number>;
  flags: Flag[];
}

const FLAG_OF_COUNT: Record<Countable, Flag> = {
  rows_processed: "rows_not_reported",
  samples_evaluated: "samples_not_reported",
};

/**
 * Returns the GPU hours to bill: the reported hours, but at most the measured ones. If no hours
 * were reported, the measured ones. Rounded down to nine decimals, the precision of measured hours.
 */
export const billableGpuHours = (reported: number | null, measured: number): number =>
  new Decimal(Math.min(reported ?? measured, measured))
    .toDecimalPlaces(9, Decimal.ROUND_DOWN)
    .toNumber();

/**
 * Computes an attempt's metered usage from the worker's report. Limits the reported GPU hours to
 * the measured ones, and other numbers to their plausible bounds. If the worker reported no rows or
 * samples, uses the control plane's count (`countOf`). The measured hours begin at the dispatch, so
 * the time to set up a worker is never billed.
 */
export function meterAttempt(
  facts: AttemptFacts,
  billed: boolean,
  bounds: UsageBounds,
  counted: Counted = NOTHING_COUNTED,
): MeteredAttempt {
  const { usage: reportedUsage, gpu_hours_measured: measured, seconds: _, ...rest } = facts;
  const { usage: accepted, cut } = withinBounds(reportedUsage ?? {}, bounds);
  const reported = accepted.gpu_hours ?? null;
  const flags: Flag[] = [];
  if (reported !== null && reported > measured) flags.push("gpu_hours_over_measured");
  if (reported === null && measured > 0) flags.push("gpu_hours_not_reported");
  const filled: Partial<Usage> = {};
  for (const [field, flag] of Object.entries(FLAG_OF_COUNT) as [Countable, Flag][]) {
    const count = counted[field];
    if (accepted[field] !== undefined || count === null) continue;
    filled[field] = count;
    flags.push(flag);
  }
  const isCut = Object.keys(cut).length > 0;
  if (isCut) flags.push("usage_over_plausible");
  return {
    ...rest,
    ...(isCut ? { reported: cut } : {}),
    gpu_hours_measured: measured,
    gpu_hours_reported: reported,
    billed,
    usage: { ...NO_USAGE, ...accepted, ...filled, gpu_hours: billableGpuHours(reported, measured) },
    flags,
  };
}
