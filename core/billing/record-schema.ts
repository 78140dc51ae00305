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
  .describe(
    "sums over the billed attempts (`stored_gb`: size of the artifact's files); the optional fields are details of the work, absent if unknown",
  );

export const numbers = z.record(z.string(), z.number());

const flags = z
  .array(z.string())
  .describe(
    "`gpu_hours_over_measured`, `gpu_hours_not_reported`: the worker reported more GPU hours than were " +
      "measured, or none; the measured hours are billed. `rows_not_reported`, `samples_not_reported`: the " +
      "control plane's count is billed. `usage_over_plausible`: tokens, rows or samples are billed up to what " +
      "the payload, dataset and time make plausible.",
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
    rate_card: z.string().describe("the rate card that the cost was computed with"),
    rate_card_version: z.int(),
    formula: z.string().describe("how the total was computed, with the numbers"),
    flags,
    attempts: z.array(
      z.object({
        attempt: z.int(),
        outcome: z.enum(OUTCOMES),
        worker_id: z.string().nullable(),
        billed: z.boolean(),
        gpu_hours: z
          .number()
          .describe("billable GPU hours; they are only billed if `billed` is true"),
        gpu_hours_measured: z.number(),
        gpu_hours_reported: z.number().nullable(),
        flags,
        reported: numbers.optional().describe("reported values of the numbers that were reduced"),
      }),
    ),
    created_at: timestamp,
  })
  .meta({ id: "BillingRecord" });

export type BillingRecord = z.infer<typeof billingRecordSchema>;
