import { declarationOf, type JobType } from "../jobs/job-types";
import type { ReportedUsage } from "./usage";

/** The most tokens, rows and samples that are billed for one attempt. */
export interface UsageBounds {
  tokens: number;
  rows: number;
  samples: number;
}

/** What is known about an attempt independently of its worker's report. */
export interface Evidence {
  type: JobType;
  payload: Record<string, unknown>;
  /** Rows of the registered dataset that the job reads; null: unknown. */
  rows: number | null;
  /** Time from dispatch to end. */
  seconds: number;
}

/** Faster than any current machine, so that a bound never cuts real usage. */
const PER_SECOND = { tokens: 1_000_000, rows: 1_000_000, samples: 10_000 } as const;

/**
 * Usage is bounded by the attempt's duration. However short the attempt was, the bound is at least
 * this.
 */
const ALWAYS = { tokens: 1_000_000_000, rows: 10_000_000, samples: 1_000_000 } as const;

/**
 * Usage is also bounded by the job's size. However small the job is, the bound is at least this. At
 * the default prices this much usage costs at most 30 USD.
 */
const SMALL_JOB = { tokens: 100_000_000, rows: 100_000 } as const;

/** Most tokens for one row that is written or improved, including retries and checks. */
const TOKENS_PER_ROW = 1_000_000;

/** Whether the bill or record of a job of this type depends on the rows that the job reads. */
export const readsRows = (type: JobType): boolean => declarationOf(type).usage.readsRows;

/**
 * Each bound is the lower one of two: a bound from the duration, and a bound from the job's size if
 * the payload or the dataset shows the size.
 */
export function boundsOf({ type, payload, rows, seconds }: Evidence): UsageBounds {
  const byTime = (unit: keyof UsageBounds): number =>
    Math.max(ALWAYS[unit], seconds * PER_SECOND[unit]);
  const { rowsWritten, counts } = declarationOf(type).usage;
  const wanted = rowsWritten?.(payload, rows) ?? null;
  const tokens = wanted === null ? Infinity : Math.max(SMALL_JOB.tokens, wanted * TOKENS_PER_ROW);
  const isCounted = counts === "rows_processed" && rows !== null;
  const read = isCounted ? Math.max(SMALL_JOB.rows, rows) : Infinity;
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
