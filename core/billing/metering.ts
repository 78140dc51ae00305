import { Decimal } from "decimal.js";
import type { JobType } from "../jobs/job-types";
import type { Outcome } from "../jobs/states";
import { type UsageBounds, withinBounds } from "./plausible";
import { type Countable, NO_USAGE, type ReportedUsage, type Usage } from "./usage";

/** Why a bill does not take what the worker said. */
type Flag =
  | "gpu_hours_over_measured"
  | "gpu_hours_not_reported"
  | "rows_not_reported"
  | "samples_not_reported"
  | "usage_over_plausible";

/** What the control plane counted itself of an attempt's work; null: it can't tell. */
export type Counted = Record<Countable, number | null>;

/** Of what an attempt that completed did. */
export function countOf({ type, params, rowsRead, rowsMade }: CountFacts): Counted {
  // The reference handler reads no more of a benchmark than the job allows.
  const limit = typeof params.limit === "number" && params.limit >= 0 ? params.limit : Infinity;
  return {
    rows_processed: type === "audit" ? (rowsRead ?? rowsMade) : null,
    samples_evaluated: type === "evaluate" && rowsRead !== null ? Math.min(rowsRead, limit) : null,
  };
}

interface CountFacts {
  type: JobType;
  params: Record<string, unknown>;
  /** Of the dataset that it reads; null: unknown. */
  rowsRead: number | null;
  /** Of the table that it made; null: there is none that could be read. */
  rowsMade: number | null;
}

export const NOTHING_COUNTED: Counted = { rows_processed: null, samples_evaluated: null };

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

const FLAG_OF_COUNT: Record<Countable, Flag> = {
  rows_processed: "rows_not_reported",
  samples_evaluated: "samples_not_reported",
};

/** To the billionth of an hour, as hours are measured; downwards, never above what was. */
const round = (hours: number): number =>
  new Decimal(hours).toDecimalPlaces(9, Decimal.ROUND_DOWN).toNumber();

/** The GPU hours that are taken of an attempt: those that its worker reports, up to what was measured. */
export const hoursOf = (reported: number | null, measured: number): number =>
  round(Math.min(reported ?? measured, measured));

/**
 * What is taken of an attempt's numbers: the GPU hours that its worker reports, as long as they are no
 * more than what was measured; else what was measured. Of the others, as much as is plausible; of rows and
 * samples that it says nothing of, those that were counted. Preparing a worker comes before its first
 * attempt, and is in none.
 */
export function meterAttempt(
  facts: AttemptFacts,
  billed: boolean,
  bounds: UsageBounds,
  counted: Counted = NOTHING_COUNTED,
): MeteredAttempt {
  const { usage: reportedUsage, gpu_hours_measured: measured, seconds: _, ...rest } = facts;
  const { usage: told, cut } = withinBounds(reportedUsage ?? {}, bounds);
  const reported = told.gpu_hours ?? null;
  const flags: Flag[] = [];
  if (reported !== null && reported > measured) flags.push("gpu_hours_over_measured");
  if (reported === null && measured > 0) flags.push("gpu_hours_not_reported");
  const filled: Partial<Usage> = {};
  for (const [field, flag] of Object.entries(FLAG_OF_COUNT) as [Countable, Flag][]) {
    const count = counted[field];
    if (told[field] !== undefined || count === null) continue;
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
    usage: {
      ...NO_USAGE,
      ...told,
      ...filled,
      gpu_hours: hoursOf(reported, measured),
    },
    flags,
  };
}
