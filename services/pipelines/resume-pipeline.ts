import type { TenantScope } from "../../core/accounts/permissions";
import { Conflict, NotFound } from "../../core/errors";
import { checkGates } from "../../core/pipelines/check-gates";
import { downstreamOf, requireStep } from "../../core/pipelines/graph";
import { stepsToRepeat, stepsToReset } from "../../core/pipelines/resume";
import { isOver } from "../../core/pipelines/step";
import { SWEEP } from "../../core/pipelines/templates";
import type { Queryable } from "../../platform/postgres/pool";
import { judgeGate } from "./judge-gate";
import { listResults, listSteps, type StepView } from "./pipeline-steps";
import { lockPipeline, openRun, type PipelineRow } from "./pipelines";
import {
  replaceChoiceCondition,
  replaceEnding,
  replaceGate,
  resetSteps,
  type StepEnding,
} from "./step-changes";
import { requestWorkflowWake } from "./workflow-wakes";

export interface Resumption {
  /** Repeat this step and all steps that depend on it, even completed ones. */
  from?: string | undefined;
  budget_usd?: number | undefined;
  /** Conditions that replace the existing ones. */
  gates: { step: string; condition: string }[];
}

/**
 * Starts another run of a pipeline that has ended, in the caller's transaction. A step that gets a
 * new gate keeps its job, and only the new gate is evaluated, in these cases:
 * - The step has completed and is not repeated.
 * - The step failed only because of its gate, and `from` is not set.
 *
 * If the new gate does not pass, the step fails. If the step is optional, completed steps that
 * depend on it run again. Otherwise, they keep their results, in case a later gate passes.
 *
 * @returns the steps that are repeated or whose gate was evaluated again.
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
  const judged = steps.filter(({ name, status, error_code }) => {
    if (!gates.some(({ step }) => step === name)) return false;
    if (!repeated.includes(name)) return status === "completed";
    return from === undefined && error_code === "gate_failed";
  });
  await openRun(db, pipelineId, budgetUsd ?? pipeline.budget_usd);
  for (const { step, condition } of gates) {
    if (step === SWEEP_EVALUATIONS && choosing !== undefined) {
      await replaceChoiceCondition(db, pipelineId, choosing, condition);
    } else await replaceGate(db, pipelineId, step, condition);
  }
  const endings = await reevaluateGates(db, pipelineId, judged, gates);
  const reset = stepsToReset(steps, endings, from);
  const fresh = from === undefined ? [] : [...downstreamOf(from, steps)];
  await resetSteps(db, pipelineId, reset, fresh);
  await requestWorkflowWake(db, pipelineId, leaseS);
  return names.filter((name) => reset.includes(name) || endings.has(name));
}

/** Evaluates the new gates of steps whose jobs have completed. Returns how each step ends now. */
async function reevaluateGates(
  db: Queryable,
  pipelineId: string,
  judged: StepView[],
  gates: Resumption["gates"],
): Promise<Map<string, StepEnding>> {
  const names = judged.map(({ name }) => name);
  const results = await listResults(db, pipelineId, names);
  const endings = new Map<string, StepEnding>();
  for (const name of names) {
    const gate = gates.find((each) => each.step === name)?.condition ?? null;
    const result = results.find((each) => each.name === name);
    const ending = judgeGate(gate, result);
    await replaceEnding(db, pipelineId, name, ending);
    endings.set(name, ending);
  }
  return endings;
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
