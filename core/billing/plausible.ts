import { declarationOf, type JobType } from "../jobs/job-types";
import type { ReportedUsage } from "./usage";

/** The maximum numbers of tokens, rows and samples that are billed for one attempt. */
export interface UsageBounds {
  tokens: number;
  rows: number;
  samples: number;
}

/** What is known about an attempt independently of its worker's report. */
export interface Evidence {
  type: JobType;
  payload: Record<string, unknown>;
  /** The number of rows in the registered dataset that the job reads; null: unknown. */
  rows: number | null;
  /** Time from dispatch to end. */
  seconds: number;
}

/**
 * The highest plausible usage per second. No current machine is as fast, so the bound never reduces
 * real usage.
 */
const PER_SECOND = { tokens: 1_000_000, rows: 1_000_000, samples: 10_000 } as const;

/** The minimum of a bound computed from an attempt's duration. It applies to short attempts. */
const MIN_BOUND_BY_TIME = { tokens: 1_000_000_000, rows: 10_000_000, samples: 1_000_000 } as const;

/**
 * The minimum of a bound computed from a job's size. It applies to small jobs. At the default
 * prices, this much usage costs at most 30 USD.
 */
const MIN_BOUND_BY_SIZE = { tokens: 100_000_000, rows: 100_000 } as const;

/**
 * The highest plausible number of tokens that a job uses to write or improve one row, including
 * retries and checks.
 */
const TOKENS_PER_ROW = 1_000_000;

/**
 * True if the bills or billing records of jobs of this type depend on the number of rows that the
 * job reads.
 */
export const readsRows = (type: JobType): boolean => declarationOf(type).usage.readsRows;

/**
 * Computes the bounds of an attempt's usage from its duration. For tokens and rows, also computes a
 * bound from the job's size, if the payload or the dataset shows the size. Then the smaller of the
 * two bounds applies.
 */
export function boundsOf({ type, payload, rows, seconds }: Evidence): UsageBounds {
  const byTime = (unit: keyof UsageBounds): number =>
    Math.max(MIN_BOUND_BY_TIME[unit], seconds * PER_SECOND[unit]);
  const { rowsWritten, counts } = declarationOf(type).usage;
  const wanted = rowsWritten?.(payload, rows) ?? null;
  const tokens =
    wanted === null ? Infinity : Math.max(MIN_BOUND_BY_SIZE.tokens, wanted * TOKENS_PER_ROW);
  const isCounted = counts === "rows_processed" && rows !== null;
  const read = isCounted ? Math.max(MIN_BOUND_BY_SIZE.rows, rows) : Infinity;
  return {
    tokens: Math.min(byTime("tokens"), tokens),
    rows: Math.min(byTime("rows"), read),
    samples: byTime("samples"),
  };
}

const BOUND_OF: Partial<Record<keyof ReportedUsage, keyof UsageBounds>> = {
  tokens_generated: "tokens",
  input_tokens: "tokens",
  output_tokens: "tokens",
  rows_processed: "rows",
  samples_evaluated: "samples",
};

/** Limits usage to its bounds. `cut`: the reported values of numbers that exceeded them. */
export function withinBounds(
  usage: Partial<ReportedUsage>,
  bounds: UsageBounds,
): { usage: Partial<ReportedUsage>; cut: Record<string, number> } {
  const kept: Record<string, number | null> = { ...usage };
  const cut: Record<string, number> = {};
  for (const [field, bound] of Object.entries(BOUND_OF)) {
    const value = kept[field];
    if (typeof value !== "number" || value <= bounds[bound]) continue;
    cut[field] = value;
    kept[field] = bounds[bound];
  }
  return { usage: kept as Partial<ReportedUsage>, cut };
}
