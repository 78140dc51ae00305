import { Decimal } from "decimal.js";
import { type Estimate, estimateJob } from "../../core/billing/estimate";
import { monthBounds } from "../../core/billing/month";
import type { RateCard } from "../../core/billing/rate-card";
import type { JobType } from "../../core/jobs/job-types";
import { requirementsOf } from "../../core/jobs/requirements";
import { remainingSeconds } from "../../core/pipelines/forecast";
import { referencesIn } from "../../core/pipelines/references";
import type { PipelineStep } from "../../core/pipelines/step";
import { readClock } from "../../platform/postgres/clock";
import type { Context } from "../context";
import { readHistory, readUsageHistory, type UsageSample } from "../pipelines/step-history";
import { findRows } from "./estimate-job";

export interface PipelineEstimate {
  steps: { step: PipelineStep; estimate: Estimate }[];
  expectedUsd: Decimal;
  lowUsd: Decimal;
  highUsd: Decimal;
  /**
   * Duration of the longest path through the steps, in seconds. Null if a job type has no history.
   */
  durationS: number | null;
}

/** Estimates cost and duration of a pipeline, assuming that each step runs once and succeeds. */
export async function estimatePipeline(
  ctx: Context,
  userId: string,
  steps: PipelineStep[],
  card: RateCard,
): Promise<PipelineEstimate> {
  const { now, end } = monthBounds(undefined, await readClock(ctx.pool));
  const types = [...new Set(steps.map(({ job_type: type }) => type))];
  const histories = new Map<JobType, UsageSample[]>();
  for (const type of types) {
    histories.set(type, await readUsageHistory(ctx.pool, userId, type));
  }
  const rowsOf = rowsReader(ctx, userId);
  const estimated: PipelineEstimate["steps"] = [];
  for (const step of steps) {
    const { job_type: type, payload, options } = step;
    const { gpuCount, gpuTokens } = requirementsOf(type, options.resources, ctx.config.jobs.policy);
    const estimate = estimateJob({
      type,
      payload,
      gpuCount,
      gpuTokens,
      rows: await rowsOf(payload),
      history: histories.get(type) ?? [],
      card,
      now,
      monthEnd: end,
    });
    estimated.push({ step, estimate });
  }
  const total = (pick: (estimate: Estimate) => Decimal): Decimal =>
    Decimal.sum(0, ...estimated.map(({ estimate }) => pick(estimate)));
  return {
    steps: estimated,
    expectedUsd: total(({ expectedUsd }) => expectedUsd),
    lowUsd: total(({ lowUsd }) => lowUsd),
    highUsd: total(({ highUsd }) => highUsd),
    durationS: await readDuration(ctx, userId, steps, types),
  };
}

/**
 * Returns a function that reads the number of rows of a payload's dataset. That function reads each
 * dataset only once, and returns null for a dataset that an earlier step will make.
 */
function rowsReader(
  ctx: Context,
  userId: string,
): (payload: Record<string, unknown>) => Promise<number | null> {
  const known = new Map<string, Promise<number | null>>();
  return async ({ dataset_id, dataset_uri, benchmark }) => {
    const named = Object.fromEntries(
      Object.entries({ dataset_id, dataset_uri, benchmark }).filter(
        ([, value]) => typeof value === "string" && referencesIn(value).length === 0,
      ),
    );
    const key = JSON.stringify(named);
    if (key === "{}") return null;
    const found = known.get(key) ?? findRows(ctx, userId, named);
    known.set(key, found);
    return await found;
  };
}

async function readDuration(
  { pool }: Context,
  userId: string,
  steps: PipelineStep[],
  types: JobType[],
): Promise<number | null> {
  const history = await readHistory(pool, userId, types);
  return remainingSeconds(
    steps.map((step) => ({ ...step, status: "pending" as const, elapsed_s: 0 })),
    (type) => history.find(({ job_type }) => job_type === type)?.duration_s,
  );
}
