import { z } from "zod";
import { InvalidRequest } from "../../core/errors";
import { OPTION_FIELDS } from "../../core/jobs/payloads";
import {
  definePipeline,
  type LocateErrors,
  type PipelineDefinition,
  stepsBody,
  templateBody,
} from "../../core/pipelines/definition";
import { referencesIn } from "../../core/pipelines/references";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import { fieldsAt, withHints } from "../../platform/http/validation";
import { newId } from "../../platform/ids";
import { ownStoreOf } from "../../platform/store/open-store";
import { createOnce } from "../../services/accounts/idempotency-keys";
import { findRateCard } from "../../services/billing/rate-cards";
import { requireBudget } from "../../services/billing/require-budget";
import type { Context } from "../../services/context";
import { checkReferences } from "../../services/jobs/new-job";
import { insertPipeline } from "../../services/pipelines/pipelines";
import { fieldsOf } from "../jobs/read-submission";
import { pipelineSchema } from "./present-pipeline";
import { showPipeline } from "./show-pipeline";

/** Complete example bodies. */
export const PIPELINE_EXAMPLES = {
  byo_data: {
    template: "byo-data",
    params: {
      audit: { dataset_uri: "s3://team-data/raw/questions.parquet" },
      distill: { teacher: "llama-3-70b" },
      train: { model: "llama-3-8b", epochs: 2, resources: { gpu: 1 } },
    },
    gates: [
      { step: "audit", condition: "quality.clarity_mean >= 0.6" },
      { step: "evaluate", condition: "scores.overall >= 0.7" },
    ],
    approvals: ["deploy"],
    budget_usd: 50,
  },
  synthetic: {
    template: "synthetic",
    params: { generate: { domain: "law", num_samples: 1000 }, train: { model: "llama-3-8b" } },
    skip: ["audit", "distill"],
    reuse: true,
  },
  sweep: {
    template: "byo-data",
    skip: ["audit", "distill"],
    params: { train: { dataset_uri: "s3://team-data/sft.parquet", model: "llama-3-8b" } },
    sweep: [{ epochs: 1 }, { epochs: 3 }],
  },
  steps: {
    name: "two evaluations of one training",
    steps: [
      { name: "train", job_type: "train", payload: { dataset_id: "ds_example", model: "m" } },
      {
        name: "legal",
        job_type: "evaluate",
        payload: {
          checkpoint_id: "${steps.train.result.checkpoint_id}",
          benchmark: "legalbench",
        },
      },
      {
        name: "general",
        job_type: "evaluate",
        payload: { checkpoint_id: "${steps.train.result.checkpoint_id}" },
      },
    ],
  },
};

export const pipelineBody = z.union([
  templateBody,
  stepsBody,
]) as unknown as z.ZodType<PipelineDefinition>;

export function pipelineSubmissionRoute(ctx: Context): Route {
  return route<unknown, PipelineDefinition>({
    method: "POST",
    paths: ["/api/pipelines"],
    scope: "user",
    operationId: "createPipeline",
    tag: "Pipelines",
    summary: "Submit a pipeline",
    description:
      "A template, or your own steps. Each step is a job that starts when the steps it needs have completed; " +
      'a value `"${steps.<name>.result.<field>}"` is replaced by that field of the step\'s result.',
    headers: idempotencyHeader,
    body: {
      schema: pipelineBody,
      parse: (body) => readPipeline(ctx, body),
      examples: PIPELINE_EXAMPLES,
    },
    responses: { 201: { description: "the pipeline, `running`", schema: pipelineSchema } },
    errorCodes: { 402: ["budget_exhausted"], 404: ["dataset_not_found", "checkpoint_not_found"] },
    async handle(call) {
      const { body, principal, request } = call;
      await checkGivenNames(ctx, principal.userId, body);
      const { userId } = principal;
      const rateCard = await findRateCard(ctx.pool, userId);
      const pipelineId = newId("pipe");
      const { answer, isNew } = await createOnce(ctx, call, {
        content: body,
        create: async (db) => {
          // Refuse the pipeline only if the tenant's budget is already exhausted. Each step is
          // checked with its expected cost when it starts.
          await requireBudget(ctx, db, userId, rateCard, 0);
          const row = await insertPipeline(db, {
            ...body,
            pipelineId,
            userId,
            createdBy: principal.keyName,
            rateCard,
            requestId: request.id,
            leaseS: ctx.config.outbox.firstLeaseS,
          });
          return await showPipeline(db, row);
        },
      });
      if (isNew) {
        const fields = { pipeline_id: pipelineId, steps: body.steps.length };
        request.log.info(fields, "pipeline accepted");
        ctx.signals.emit("pipeline", pipelineId);
      }
      return answer;
    },
  });
}

/**
 * If the setting `strictReferences` is on, ids in the body must exist. Ids that come from earlier
 * steps are checked when the step begins.
 */
async function checkGivenNames(
  ctx: Context,
  userId: string,
  { steps }: PipelineDefinition,
): Promise<void> {
  if (!ctx.config.jobs.strictReferences) return;
  for (const { payload } of steps) {
    const given = Object.entries(payload).filter(([, value]) => referencesIn(value).length === 0);
    await checkReferences(ctx, userId, Object.fromEntries(given));
  }
}

export function readPipeline(ctx: Context, body: unknown): PipelineDefinition {
  const isTemplate = typeof body === "object" && body !== null && "template" in body;
  const known = (path: PropertyKey[]): string[] =>
    fieldsAt(isTemplate ? templateBody : stepsBody, path);
  const defaults = {
    teacher: ctx.config.jobs.defaultTeacher,
    artifactsRoot: ownStoreOf(ctx.config.store).artifactsRoot,
  };
  return withHints(known, () => definePipeline(body, defaults, withStepPath));
}

/** Errors in a step's submission name the field by its path in the pipeline's body. */
const withStepPath: LocateErrors = (type, at, run) => {
  try {
    return withHints(fieldsOf(type), run);
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    const param = error.param ?? "";
    const [field = ""] = param.split(".");
    const place = field in OPTION_FIELDS ? at.options : at.payload;
    const path = param === "" ? place : `${place}.${param}`;
    throw new InvalidRequest(`${place}: ${error.message}`, path);
  }
};
