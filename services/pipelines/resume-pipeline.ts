import type { TenantScope } from "../../core/accounts/permissions";
import { Conflict, NotFound } from "../../core/errors";
import { checkGates } from "../../core/pipelines/check-gates";
import { downstreamOf, requireStep } from "../../core/pipelines/graph";
import { stepsToRepeat } from "../../core/pipelines/resume";
import { isOver } from "../../core/pipelines/step";
import { SWEEP } from "../../core/pipelines/templates";
import type { Queryable } from "../../platform/postgres/pool";
import { listSteps, type StepView } from "./pipeline-steps";
import { lockPipeline, openRun, type PipelineRow } from "./pipelines";
import { reevaluateGate, replaceChoiceCondition, replaceGate, resetSteps } from "./step-changes";
import { requestWorkflowWake } from "./workflow-wakes";

export interface Resumption {
  /** Repeat this step and all steps that depend on it, even completed ones. */
  from?: string | undefined;
  budget_usd?: number | undefined;
  /** Conditions that replace the existing ones. */
  gates: { step: string; condition: string }[];
}

/**
 * Starts another run of a pipeline that has ended, in the caller's transaction. A repeated step
 * keeps its job only if all of these are true: `from` is not set, the step failed only because of
 * its gate, and `gates` contains a new condition for that gate. Then only the new condition is
 * evaluated.
 *
 * @returns the repeated steps, including those that keep their jobs.
 */
export async function resumePipeline(
  db: Queryable,
  pipelineId: string,
  tenantScope: TenantScope,
  { from, budget_usd: budgetUsd, gates }: Resumption,
  leaseS: number,
): Promise<string[]> {
  const pipeline = await lockPipeline(db, pipelineId, tenantScope);
  if (!pipeline) throw new NotFound("pipeline", pipelineId);
  const steps = await listSteps(db, [pipelineId]);
  const choosing = choosingStep(pipeline, steps);
  const names = steps.map(({ name }) => name);
  if (from !== undefined) requireStep(from, names, "from");
  checkGates(gates, choosing === undefined ? names : [...names, SWEEP_EVALUATIONS]);
  if (!isOver(pipeline.status)) {
    throw new Conflict("pipeline_running", `the pipeline is ${pipeline.status}`);
  }
  if (pipeline.status === "completed" && from === undefined) {
    const message = 'the pipeline has completed; set "from" to the step to repeat it from';
    throw new Conflict("pipeline_completed", message, "from");
  }
  const repeated = stepsToRepeat(steps, from);
  const kept = repeated.filter((name) => isOnlyJudged(name, from, steps, gates));
  await openRun(db, pipelineId, budgetUsd ?? pipeline.budget_usd);
  for (const { step, condition } of gates) {
    if (step === SWEEP_EVALUATIONS && choosing !== undefined) {
      await replaceChoiceCondition(db, pipelineId, choosing, condition);
    } else await replaceGate(db, pipelineId, step, condition);
  }
  const reset = repeated.filter((name) => !kept.includes(name));
  const fresh = from === undefined ? [] : [...downstreamOf(from, steps)];
  await resetSteps(db, pipelineId, reset, fresh);
  for (const name of kept) await reevaluateGate(db, pipelineId, name);
  await requestWorkflowWake(db, pipelineId, leaseS);
  return repeated;
}

/**
 * A name that callers use in `gates` to mean all evaluation steps of a sweep. A sweep trains
 * several models, evaluates each model in a separate step, and chooses the best model. A condition
 * with this name replaces the condition that a model must meet to be chosen.
 */
const SWEEP_EVALUATIONS = SWEEP.judged;

function choosingStep({ template }: PipelineRow, steps: StepView[]): string | undefined {
  if (template === null || steps.some(({ name }) => name === SWEEP_EVALUATIONS)) return undefined;
  return steps.find(({ choose }) => choose !== null)?.name;
}

const isOnlyJudged = (
  name: string,
  from: string | undefined,
  steps: StepView[],
  gates: Resumption["gates"],
): boolean =>
  from === undefined &&
  gates.some(({ step }) => step === name) &&
  steps.some((step) => step.name === name && step.error_code === "gate_failed");
