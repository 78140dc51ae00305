import type { JobType } from "../jobs/job-types";
import type { ReportedUsage } from "./usage";

/** Most that is billed of what one attempt reports, each in its own unit. */
export interface UsageBounds {
  tokens: number;
  rows: number;
  samples: number;
}

/** What is known of an attempt besides its worker's word. */
export interface Evidence {
  type: JobType;
  payload: Record<string, unknown>;
  /** Rows of the registered dataset that it reads; null: unknown. */
  rows: number | null;
  /** From its dispatch to its end. */
  seconds: number;
}

/** Faster than any machine works today: a bound must never cut what was really done. */
const PER_SECOND = { tokens: 1_000_000, rows: 1_000_000, samples: 10_000 } as const;

/** Taken however short the job was, where only its time is known. */
const ALWAYS = { tokens: 1_000_000_000, rows: 10_000_000, samples: 1_000_000 } as const;

/** Taken however small the job is that its payload or dataset describes: at most 30 USD. */
const SMALL_JOB = { tokens: 100_000_000, rows: 100_000 } as const;

/** Of one row that is written or improved, with every try and every check that it takes. */
const TOKENS_PER_ROW = 1_000_000;

/** Types whose bill or record depends on the rows that they read. */
export const readsRows = (type: JobType): boolean => type !== "generate" && type !== "deploy";

/** By the payload and the dataset where these tell, else by the time. */
export function boundsOf({ type, payload, rows, seconds }: Evidence): UsageBounds {
  const byTime = {
    tokens: Math.max(ALWAYS.tokens, seconds * PER_SECOND.tokens),
    rows: Math.max(ALWAYS.rows, seconds * PER_SECOND.rows),
    samples: Math.max(ALWAYS.samples, seconds * PER_SECOND.samples),
  };
  const wanted = type === "generate" ? Number(payload.size) : type === "distill" ? rows : null;
  const tokens = wanted === null ? Infinity : Math.max(SMALL_JOB.tokens, wanted * TOKENS_PER_ROW);
  const read = type === "audit" && rows !== null ? Math.max(SMALL_JOB.rows, rows) : Infinity;
  return {
    tokens: Math.min(byTime.tokens, tokens),
    rows: Math.min(byTime.rows, read),
    samples: byTime.samples,
  };
}

const BOUND_OF: Partial<Record<keyof ReportedUsage, keyof UsageBounds>> = {
  tokens_generated: "tokens",
  input_tokens: "tokens",
  output_tokens: "tokens",
  rows_processed: "rows",
  samples_evaluated: "samples",
};

/** The usage within its bounds, and the numbers that were cut, as they were reported. */
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
