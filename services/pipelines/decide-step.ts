import type { TenantScope } from "../../core/accounts/permissions";
import { Conflict, InvalidRequest, NotFound } from "../../core/errors";
import { requireStep } from "../../core/pipelines/graph";
import type { Queryable } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { type AuditEntry, recordAudit } from "../accounts/audit";
import type { Context } from "../context";
import { listSteps } from "./pipeline-steps";
import { isSuperseded, lockPipeline } from "./pipelines";
import { type Decision, decideStep as decide } from "./step-changes";
import { requestWorkflowWake } from "./workflow-wakes";

/**
 * Approves or rejects a step that waits for approval. Idempotent if `step` is given: repeating the
 * decision is then no error.
 *
 * @param step optional if exactly one step waits for approval.
 * @param origin.principal undefined if the decision was made in Temporal's UI.
 * @param origin.run the pipeline's run in which the decision was made; undefined: the current one.
 * @returns the name of the step.
 */
export async function decideStep(
  ctx: Context,
  pipelineId: string,
  tenantScope: TenantScope,
  step: string | undefined,
  decision: Decision,
  origin: { principal?: AuditEntry["principal"]; run?: number | undefined } = {},
): Promise<string> {
  const decided = await transaction(ctx.pool, async (db) => {
    const pipeline = await lockPipeline(db, pipelineId, tenantScope);
    if (!pipeline) throw new NotFound("pipeline", pipelineId);
    if (isSuperseded(origin, pipeline)) {
      throw new Conflict("no_step_waiting", `run ${origin.run} is over`, "step");
    }
    const name = await resolveStepName(db, pipelineId, step, decision);
    if (await decide(db, pipelineId, name, decision)) {
      await requestWorkflowWake(db, pipelineId, ctx.config.outbox.firstLeaseS);
      if (origin.principal) {
        await recordAudit(db, {
          userId: pipeline.user_id,
          action: decision.approved ? "step_approved" : "step_rejected",
          subject: `${pipelineId}/${name}`,
          principal: origin.principal,
          after: { note: decision.note },
        });
      }
    }
    return name;
  });
  ctx.signals.emit("pipeline", pipelineId);
  return decided;
}

async function resolveStepName(
  db: Queryable,
  pipelineId: string,
  given: string | undefined,
  { approved }: Decision,
): Promise<string> {
  const steps = await listSteps(db, [pipelineId]);
  const waiting = steps.filter(({ status }) => status === "waiting_approval");
  if (given === undefined) {
    const [only, ...more] = waiting;
    if (!only) throw new Conflict("no_step_waiting", "no step is waiting for approval", "step");
    if (more.length === 0) return only.name;
    const names = waiting.map(({ name }) => name).join(", ");
    const message = `several steps are waiting for approval: ${names}; name one of them`;
    throw new InvalidRequest(message, "step");
  }
  const names = steps.map(({ name }) => name);
  requireStep(given, names, "step");
  const step = steps.find(({ name }) => name === given);
  if (step?.status === "waiting_approval" || step?.approved === approved) return given;
  const message =
    step?.approved === null
      ? `step "${given}" is ${step.status}; it is not waiting for approval`
      : `step "${given}" was ${step?.approved ? "approved" : "rejected"} by ${step?.decided_by}`;
  throw new Conflict("step_not_waiting", message, "step");
}
