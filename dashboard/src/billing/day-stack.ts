import type { DailyBilling } from "@forge/sdk";
import { JOB_TYPES, type JobType } from "../jobs/declared-types";
import { daysOf } from "./period";

interface Part {
  type: JobType;
  usd: number;
  /** Where the segment starts and ends in the day's stack, in USD. */
  from: number;
  to: number;
}

export interface Day {
  /** YYYY-MM-DD, UTC. */
  day: string;
  total: number;
  parts: Part[];
}

/** All days of the month, each with its costs stacked by type. Future days are empty. */
export function stackDays(daily: DailyBilling): Day[] {
  const known = new Map(daily.days.map((each) => [each.day, each]));
  return daysOf(daily.period).map((day) => {
    const costs = known.get(day);
    let to = 0;
    const parts = JOB_TYPES.flatMap((type) => {
      const usd = costs?.by_job_type[type] ?? 0;
      if (usd <= 0) return [];
      const from = to;
      to += usd;
      return [{ type, usd, from, to }];
    });
    return { day, total: costs?.total_cost_usd ?? 0, parts };
  });
}

/** The types with a cost, in the order of JOB_TYPES. */
export const typesIn = (days: readonly Day[]): JobType[] =>
  JOB_TYPES.filter((type) => days.some(({ parts }) => parts.some((part) => part.type === type)));

/** Returns an axis's ticks: evenly spaced round numbers from 0 to at least `largest`. */
export function niceTicks(largest: number, about = 4): number[] {
  if (!(largest > 0)) return [0];
  const rough = largest / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const count = Math.ceil(largest / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, at) => at * step);
}

/** A tick's label, with enough decimals to distinguish adjacent ticks. */
export function tickLabel(usd: number, step: number): string {
  const digits =
    step >= 1 && Number.isInteger(step) ? 0 : Math.max(2, -Math.floor(Math.log10(step)) + 1);
  return `$${usd.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}
