import type { TenantScope } from "../../core/accounts/principal";
import { Conflict, InvalidRequest, NotFound } from "../../core/errors";
import { checkCondition } from "../../core/pipelines/gate";
import { downstreamOf, requireStep } from "../../core/pipelines/graph";
import { stepsToRepeat } from "../../core/pipelines/resume";
import { isOver } from "../../core/pipelines/step";
import type { Queryable } from "../../platform/postgres/pool";
import { listSteps, type StepView } from "../../services/pipelines/pipeline-steps";
import {
  askWorkflow,
  lockPipeline,
  openRun,
  type PipelineRow,
} from "../../services/pipelines/pipelines";
import {
  judgeAgain,
  replaceBar,
  replaceGate,
  resetSteps,
} from "../../services/pipelines/step-changes";

export interface Resumption {
  /** Do this step and all after it again, also where they have completed. */
  from?: string | undefined;
  budget_usd?: number | undefined;
  /** Conditions in place of those that there were. */
  gates: { step: string; condition: string }[];
}

/**
 * Begins another run of a pipeline that is over, in the caller's transaction. A step that only its gate
 * has stopped, and that gets another one, is judged anew and not done again.
 *
 * @returns the steps that are done again.
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
  checkGiven(gates, from, [
    ...steps.map(({ name }) => name),
    ...(choosing === undefined ? [] : [SWEPT]),
  ]);
  if (!isOver(pipeline.status)) {
    throw new Conflict("pipeline_running", `the pipeline is ${pipeline.status}`);
  }
  if (pipeline.status === "completed" && from === undefined) {
    const message = "the pipeline has completed; say from which step it is to be done again";
    throw new Conflict("pipeline_completed", message, "from");
  }
  const again = stepsToRepeat(steps, from);
  const kept = again.filter((name) => isOnlyJudged(name, from, steps, gates));
  await openRun(db, pipelineId, budgetUsd ?? pipeline.budget_usd);
  for (const { step, condition } of gates) {
    if (step === SWEPT && choosing !== undefined) {
      await replaceBar(db, pipelineId, choosing, condition);
    } else await replaceGate(db, pipelineId, step, condition);
  }
  const reset = again.filter((name) => !kept.includes(name));
  const fresh = from === undefined ? [] : [...downstreamOf(from, steps)];
  await resetSteps(db, pipelineId, reset, fresh);
  for (const name of kept) await judgeAgain(db, pipelineId, name);
  await askWorkflow(db, pipelineId, leaseS);
  return again;
}

/** What a sweep's evaluations are called together: their gate is the bar of the step that chooses. */
const SWEPT = "evaluate";

function choosingStep({ template }: PipelineRow, steps: StepView[]): string | undefined {
  if (template === null || steps.some(({ name }) => name === SWEPT)) return undefined;
  return steps.find(({ choose }) => choose !== null)?.name;
}

function checkGiven(gates: Resumption["gates"], from: string | undefined, names: string[]): void {
  if (from !== undefined) requireStep(from, names, "from");
  gates.forEach(({ step, condition }, index) => {
    requireStep(step, names, `gates.${index}.step`);
    try {
      checkCondition(condition);
    } catch (error) {
      if (!(error instanceof InvalidRequest)) throw error;
      throw new InvalidRequest(error.message, `gates.${index}.condition`);
    }
  });
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
