import { z } from "zod";
import { JOB_TYPES } from "../jobs/job-types";
import { OUTCOMES } from "../jobs/states";
import { timestamp } from "../timestamp";
import { detailsSchema } from "./details";

const amount = z.number();

/** The metrics of spec.md 2.5 for all job types: first those that are priced, then details. */
const metricsSchema = z
  .object({
    gpu_hours: amount,
    gpu_hours_measured: amount,
    tokens_generated: amount,
    input_tokens: amount,
    output_tokens: amount,
    rows_processed: amount,
    samples_evaluated: amount,
    deployment_lifetime_days: amount,
    stored_gb: amount,
    ...detailsSchema.shape,
  })
  .describe("sums over the attempts that are billed; then, each where it is known, what was done");

export const numbers = z.record(z.string(), z.number());

const flags = z
  .array(z.string())
  .describe(
    "`gpu_hours_over_measured`: the worker reported more than was measured, which is billed; " +
      "`gpu_hours_not_reported`: what was measured is billed; `rows_not_reported`, " +
      "`samples_not_reported`: what the control plane counted is billed; `usage_over_plausible`: tokens, rows or " +
      "samples are billed up to what the job's payload, dataset and time make plausible",
  );

/** A billing record, in the API and in its file. */
export const billingRecordSchema = z
  .object({
    job_id: z.string(),
    user_id: z.string(),
    job_type: z.enum(JOB_TYPES),
    metrics: metricsSchema,
    unit_costs: numbers.describe("USD"),
    cost_breakdown: numbers.describe("USD"),
    total_cost_usd: z.number(),
    state: z.enum(["accruing", "final"]),
    rate_card: z.string().describe("the name of the card it was computed with"),
    rate_card_version: z.int(),
    formula: z.string().describe("how the total came about, with the numbers"),
    flags,
    attempts: z.array(
      z.object({
        attempt: z.int(),
        outcome: z.enum(OUTCOMES),
        worker_id: z.string().nullable(),
        billed: z.boolean(),
        gpu_hours: z.number().describe("as billed, or as it would be"),
        gpu_hours_measured: z.number(),
        gpu_hours_reported: z.number().nullable(),
        flags,
        reported: numbers.optional().describe("numbers that were cut, as the worker told them"),
      }),
    ),
    created_at: timestamp,
  })
  .meta({ id: "BillingRecord" });

export type BillingRecord = z.infer<typeof billingRecordSchema>;
