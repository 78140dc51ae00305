import { z } from "zod";
import { tenantScopeOf } from "../../core/accounts/permissions";
import { Conflict, NotFound } from "../../core/errors";
import { gateSchema } from "../../core/pipelines/definition";
import { MAX_STEPS, PIPELINE_STATUSES, stepName } from "../../core/pipelines/step";
import { sendIfChanged } from "../../platform/http/conditional";
import { listOf, pageOf, pageQuery, presentPage } from "../../platform/http/lists";
import { idempotencyHeader } from "../../platform/http/openapi";
import { type Route, route } from "../../platform/http/route";
import { createOnce } from "../../services/accounts/idempotency-keys";
import type { Context } from "../../services/context";
import { cancelPipeline } from "../../services/pipelines/cancel-pipeline";
import { decideStep } from "../../services/pipelines/decide-step";
import { listSteps } from "../../services/pipelines/pipeline-steps";
import {
  costsOfPipelines,
  listPipelines,
  type PipelineRow,
} from "../../services/pipelines/pipelines";
import { resumePipeline } from "../../services/pipelines/resume-pipeline";
import { tenantFilter, tenantQuery } from "../accounts/tenant-filter";
import { searchQuery } from "../search-query";
import { pipelineBudgetRoute, recordPipelineBudget, usd } from "./pipeline-budget";
import { pipelineSchema, presentPipeline } from "./present-pipeline";
import { requirePipeline, show, showPipeline } from "./show-pipeline";

const NOT_FOUND = { 404: ["pipeline_not_found"] };

const resumeBody = z.strictObject({
  from: stepName.optional().describe("repeat this step and all steps after it, even if completed"),
  budget_usd: usd.optional().describe("replaces the pipeline's budget"),
  gates: z
    .array(gateSchema)
    .max(MAX_STEPS)
    .default([])
    .describe("replace the gates of these steps"),
});

const approveBody = z.strictObject({
  step: stepName.optional().describe("optional if only one step waits"),
  approved: z.boolean().default(true).describe("false: reject the step; the pipeline fails"),
  note: z.string().max(4096).optional(),
});

export function pipelineRoutes(ctx: Context): Route[] {
  return [
    pipelineBudgetRoute(ctx),
    route({
      method: "GET",
      paths: ["/api/pipelines"],
      scope: "user",
      operationId: "listPipelines",
      tag: "Pipelines",
      summary: "List pipelines, newest first",
      sharesResult: true,
      query: z.strictObject({
        ...pageQuery,
        status: z
          .array(z.enum(PIPELINE_STATUSES))
          .min(1)
          .max(16)
          .optional()
          .describe("any of these"),
        tag: z.array(z.string().min(1).max(128)).max(16).optional().describe("all of these"),
        ...searchQuery("the beginning of a pipeline's id, or a part of its name or of a tag"),
        ...tenantQuery,
      }),
      responses: {
        200: { description: "a page of pipelines", schema: listOf("pipelines", pipelineSchema) },
      },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const filter = { statuses: query.status, tags: query.tag, text: query.q };
        const tenantScope = tenantFilter(principal, query.user_id);
        const rows = await listPipelines(ctx.pool, tenantScope, filter, page);
        const ids = rows.map((row) => row.pipeline_id);
        const steps = await listSteps(ctx.pool, ids);
        const costs = await costsOfPipelines(ctx.pool, ids);
        const present = (row: PipelineRow) => {
          const own = steps.filter((step) => step.pipeline_id === row.pipeline_id);
          return presentPipeline(row, own, costs.get(row.pipeline_id) ?? 0);
        };
        return presentPage("pipelines", rows, page, (row) => row.pipeline_id, present);
      },
    }),
    route({
      method: "GET",
      paths: ["/api/pipelines/:pipeline_id"],
      scope: "user",
      operationId: "getPipeline",
      tag: "Pipelines",
      summary: "Read a pipeline",
      headers: {
        "If-None-Match": z.string().optional().describe("the ETag of an earlier answer"),
      },
      responses: {
        200: {
          description: "the pipeline, with its cost and expected duration",
          schema: pipelineSchema,
          headers: { ETag: "changes with the pipeline" },
        },
        304: { description: "the pipeline has not changed: If-None-Match still holds its ETag" },
      },
      errorCodes: NOT_FOUND,
      async handle({ principal, params, request, reply }) {
        const shown = await show(ctx, params.pipeline_id ?? "", tenantScopeOf(principal));
        return sendIfChanged(request, reply, shown);
      },
    }),
    route({
      method: "POST",
      paths: ["/api/pipelines/:pipeline_id/cancel"],
      scope: "user",
      operationId: "cancelPipeline",
      tag: "Pipelines",
      summary: "Cancel a pipeline and its unfinished jobs",
      body: { schema: z.strictObject({}), examples: {}, optional: true },
      responses: {
        202: { description: "the pipeline; no further step starts", schema: pipelineSchema },
      },
      errorCodes: { ...NOT_FOUND, 409: ["pipeline_over"] },
      async handle({ principal, params }) {
        const id = params.pipeline_id ?? "";
        const tenantScope = tenantScopeOf(principal);
        const answer = await cancelPipeline(ctx, id, tenantScope, principal.keyName);
        if (answer === "unknown") throw new NotFound("pipeline", id);
        const shown = await show(ctx, id, tenantScope);
        if (answer === "over" && shown.status !== "cancelled") {
          throw new Conflict("pipeline_over", `the pipeline is ${shown.status}`);
        }
        return shown;
      },
    }),
    route({
      method: "POST",
      paths: ["/api/pipelines/:pipeline_id/approve"],
      scope: "user",
      operationId: "approvePipelineStep",
      tag: "Pipelines",
      summary: "Approve or reject a step that waits for approval",
      body: { schema: approveBody, examples: {}, optional: true },
      responses: {
        200: { description: "the pipeline, with the decision", schema: pipelineSchema },
      },
      errorCodes: { ...NOT_FOUND, 409: ["no_step_waiting", "step_not_waiting"] },
      async handle({ body, principal, params }) {
        const id = params.pipeline_id ?? "";
        const tenantScope = tenantScopeOf(principal);
        const { approved, note = null } = body;
        const decision = { approved, by: principal.keyName, note };
        await decideStep(ctx, id, tenantScope, body.step, decision, { principal });
        return await show(ctx, id, tenantScope);
      },
    }),
    route({
      method: "POST",
      paths: ["/api/pipelines/:pipeline_id/resume"],
      scope: "user",
      operationId: "resumePipeline",
      tag: "Pipelines",
      summary: "Resume a failed pipeline, or repeat one from a step",
      description:
        "Completed steps are kept, except `from` and the steps after it. If you give a new gate to a step " +
        "that is kept, or that failed only at its gate, the step does not run again: only the new gate " +
        "is evaluated. If it does not pass, the pipeline fails; if the step is optional, the steps after it " +
        "are repeated.",
      headers: idempotencyHeader,
      body: { schema: resumeBody, examples: {}, optional: true },
      responses: { 202: { description: "the pipeline, `running`", schema: pipelineSchema } },
      errorCodes: { ...NOT_FOUND, 409: ["pipeline_running", "pipeline_completed"] },
      async handle(call) {
        const { body, principal, params, request } = call;
        const id = params.pipeline_id ?? "";
        const tenantScope = tenantScopeOf(principal);
        const { answer, isNew } = await createOnce(ctx, call, {
          content: [id, body],
          create: async (db) => {
            const before = await requirePipeline(db, id, tenantScope);
            const { firstLeaseS: leaseS } = ctx.config.outbox;
            const repeated = await resumePipeline(db, id, tenantScope, body, leaseS);
            const after = await requirePipeline(db, id, tenantScope);
            if (body.budget_usd !== undefined) {
              await recordPipelineBudget(db, before, after, principal);
            }
            request.log.info({ pipeline_id: id, repeated }, "pipeline resumed");
            return await showPipeline(db, after);
          },
        });
        if (isNew) ctx.signals.emit("pipeline", id);
        return answer;
      },
    }),
  ];
}
