import { z } from "zod";
import { JOB_TYPES } from "../../core/jobs/job-types";
import type { PipelineDefinition } from "../../core/pipelines/definition";
import { type Route, route } from "../../platform/http/route";
import { estimatePipeline } from "../../services/billing/estimate-pipeline";
import { findRateCard } from "../../services/billing/rate-cards";
import type { Context } from "../../services/context";
import { amounts, presentAmounts } from "../billing/billing-estimate";
import { nullableNumber } from "../fields";
import { PIPELINE_EXAMPLES, pipelineBody, readPipeline } from "./pipeline-submissions";

const estimateSchema = z
  .object({
    currency: z.literal("USD"),
    ...amounts,
    duration_s: nullableNumber.describe(
      "time of the longest path through the steps, without waits for workers and approvals; " +
        "null if the type of at least one step has no past jobs",
    ),
    steps: z.array(
      z.object({
        name: z.string(),
        job_type: z.enum(JOB_TYPES),
        ...amounts,
        basis: z.enum(["payload", "history", "prior"]).describe("as in a job's estimate"),
        samples: z.int(),
      }),
    ),
    rate_card: z.string(),
    rate_card_version: z.int(),
  })
  .meta({ id: "PipelineEstimate" });

export function pipelineEstimateRoute(ctx: Context): Route {
  return route<unknown, PipelineDefinition>({
    method: "POST",
    paths: ["/api/pipelines/estimate"],
    scope: "user",
    operationId: "estimatePipeline",
    tag: "Pipelines",
    summary: "Estimate a pipeline's cost and duration",
    description:
      "The body is the same as for a submission, but nothing is submitted. The estimate assumes that each step " +
      "succeeds at its first attempt and reuses nothing. The ends of the range are the sums of the steps' ends.",
    body: {
      schema: pipelineBody,
      parse: (body) => readPipeline(ctx, body),
      examples: PIPELINE_EXAMPLES,
    },
    responses: { 200: { description: "the estimate", schema: estimateSchema } },
    async handle({ body, principal: { userId } }) {
      const card = await findRateCard(ctx.pool, userId);
      const pipeline = await estimatePipeline(ctx, userId, body.steps, card);
      return {
        currency: "USD",
        ...presentAmounts(pipeline),
        duration_s: pipeline.durationS,
        steps: pipeline.steps.map(({ step, estimate }) => ({
          name: step.name,
          job_type: step.job_type,
          ...presentAmounts(estimate),
          basis: estimate.basis,
          samples: estimate.samples,
        })),
        rate_card: card.name,
        rate_card_version: card.version ?? 1,
      };
    },
  });
}
