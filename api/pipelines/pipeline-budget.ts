import { z } from "zod";
import { type Principal, tenantScopeOf } from "../../core/accounts/permissions";
import { Conflict, InvalidRequest, NotFound } from "../../core/errors";
import { isOver } from "../../core/pipelines/step";
import { type Route, route } from "../../platform/http/route";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { recordAudit } from "../../services/accounts/audit";
import type { Context } from "../../services/context";
import {
  lockPipeline,
  type PipelineRow,
  setPipelineBudget,
} from "../../services/pipelines/pipelines";
import { pipelineSchema } from "./present-pipeline";
import { show } from "./show-pipeline";

export const usd = z.number().min(0).max(999_999_999_999);

const budgetBody = z.strictObject({
  budget_usd: usd
    .nullable()
    .describe("no step starts if the pipeline would then cost more; null: no limit"),
  warning_usd: usd
    .nullable()
    .optional()
    .describe("cost from which `budget_state` is `warning`; by default 80 % of the budget"),
});

export function pipelineBudgetRoute(ctx: Context): Route {
  return route<unknown, z.output<typeof budgetBody>>({
    method: "PUT",
    paths: ["/api/pipelines/:pipeline_id/budget"],
    scope: "user",
    operationId: "setPipelineBudget",
    tag: "Pipelines",
    summary: "Set the budget of an unfinished pipeline",
    description:
      "A pipeline that has ended gets a new budget when you resume it. The audit log records each change.",
    body: { schema: budgetBody, examples: { raised: { budget_usd: 100 } } },
    responses: { 200: { description: "the pipeline", schema: pipelineSchema } },
    errorCodes: { 404: ["pipeline_not_found"], 409: ["pipeline_over"] },
    async handle({ params, body, principal }) {
      const id = params.pipeline_id ?? "";
      const tenantScope = tenantScopeOf(principal);
      const { budget_usd: budget, warning_usd: warning = null } = body;
      if (warning !== null && budget !== null && warning > budget) {
        throw new InvalidRequest('"warning_usd" must not be above "budget_usd"', "warning_usd");
      }
      await transaction(ctx.pool, async (db) => {
        const before = await lockPipeline(db, id, tenantScope);
        if (!before) throw new NotFound("pipeline", id);
        if (isOver(before.status)) {
          throw new Conflict("pipeline_over", `the pipeline is ${before.status}`);
        }
        await setPipelineBudget(db, id, budget, warning);
        const after = { ...before, budget_usd: budget, warning_usd: warning };
        await recordPipelineBudget(db, before, after, principal);
      });
      return await show(ctx, id, tenantScope);
    },
  });
}

/** Writes a budget change to the audit log. Call it in the transaction that changes the budget. */
export async function recordPipelineBudget(
  db: Queryable,
  before: PipelineRow,
  after: PipelineRow,
  principal: Principal,
): Promise<void> {
  const bounds = ({ budget_usd, warning_usd }: PipelineRow) => ({ budget_usd, warning_usd });
  await recordAudit(db, {
    userId: before.user_id,
    action: "pipeline_budget_set",
    subject: before.pipeline_id,
    principal,
    before: bounds(before),
    after: bounds(after),
  });
}
