import type { Decimal } from "decimal.js";
import { z } from "zod";
import { InvalidRequest } from "../../core/errors";
import { JOB_TYPES, type JobType } from "../../core/jobs/job-types";
import { type Submission, submissionForms } from "../../core/jobs/payloads";
import { type Route, route } from "../../platform/http/route";
import { parse } from "../../platform/http/validation";
import { estimateSubmission } from "../../services/billing/estimate-job";
import { findRateCard } from "../../services/billing/rate-cards";
import type { Context } from "../../services/context";
import { readSubmission, requireJobType } from "../jobs/read-submission";

const estimateBody = z.strictObject({
  job_type: z.enum(JOB_TYPES),
  payload: z.record(z.string(), z.unknown()),
});
type EstimateBody = z.output<typeof estimateBody>;

/** The body as the OpenAPI document shows it: one form for each job type. */
const documentedBody = z.union(
  JOB_TYPES.map((type) =>
    z.strictObject({
      job_type: z.literal(type),
      payload: submissionForms(type).describe(
        "the job's payload, with options such as `resources`",
      ),
    }),
  ),
) as unknown as z.ZodType<EstimateBody>;

/** Schema of the expected cost and its range, for all responses with estimates. */
export const amounts = { expected_usd: z.number(), low_usd: z.number(), high_usd: z.number() };

export const presentAmounts = (
  estimate: Record<"expectedUsd" | "lowUsd" | "highUsd", Decimal>,
) => ({
  expected_usd: estimate.expectedUsd.toNumber(),
  low_usd: estimate.lowUsd.toNumber(),
  high_usd: estimate.highUsd.toNumber(),
});

const estimateSchema = z
  .object({
    job_type: z.enum(JOB_TYPES),
    currency: z.literal("USD"),
    ...amounts,
    basis: z
      .enum(["payload", "history", "prior"])
      .describe(
        "`payload`: computed from the payload; `history`: from your past jobs of this type, of which one in " +
          "ten cost less than `low_usd` and one in ten more than `high_usd`; `prior`: from a rule of thumb, " +
          "because you have no such jobs yet",
      ),
    samples: z.int().describe("number of jobs that the estimate is based on"),
    formula: z.string().describe("formula of the expected cost"),
    rate_card: z.string(),
    rate_card_version: z.int(),
  })
  .meta({ id: "Estimate" });

export function billingEstimateRoute(ctx: Context): Route {
  return route<unknown, EstimateBody>({
    method: "POST",
    paths: ["/api/billing/estimate"],
    scope: "user",
    operationId: "estimateCost",
    tag: "Billing",
    summary: "Estimate a job's cost",
    description:
      "The cost of one successful attempt; for a deployment, the cost from now to the month's end.",
    body: {
      schema: documentedBody,
      parse: (body) => {
        requireTypeOf(body);
        return parse(estimateBody, body);
      },
      examples: {
        generate: {
          job_type: "generate",
          payload: { task: "question answering", size: 1000, teacher: "llama-3-70b" },
        },
        deploy: { job_type: "deploy", payload: { checkpoint_id: "ckpt_example" } },
      },
    },
    responses: { 200: { description: "the expected cost, with a range", schema: estimateSchema } },
    async handle({ principal: { userId }, body: { job_type: type, payload } }) {
      const submission = readPayload(ctx, type, payload);
      const card = await findRateCard(ctx.pool, userId);
      const estimate = await estimateSubmission(ctx, userId, type, submission, card);
      return {
        job_type: type,
        currency: "USD",
        ...presentAmounts(estimate),
        basis: estimate.basis,
        samples: estimate.samples,
        formula: estimate.formula,
        rate_card: card.name,
        rate_card_version: card.version ?? 1,
      };
    },
  });
}

/** Parses the submission in `payload`. Errors name a field by its path in the whole body. */
function readPayload(ctx: Context, type: JobType, payload: unknown): Submission {
  try {
    return readSubmission(ctx, type, payload);
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    throw new InvalidRequest(error.message, ["payload", error.param].filter(Boolean).join("."));
  }
}

/** Rejects an unknown job type and suggests the nearest one, as job submission does. */
function requireTypeOf(body: unknown): void {
  const { job_type: type } = (body ?? {}) as { job_type?: unknown };
  if (typeof type === "string") requireJobType(type);
}
