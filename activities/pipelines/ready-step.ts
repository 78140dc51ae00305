import { isReady } from "../../core/pipelines/due-work";
import { hasEnded } from "../../core/pipelines/workflow";
import type { Queryable } from "../../platform/postgres/pool";
import { listPlannedSteps } from "../../services/pipelines/pipeline-steps";

/**
 * Returns whether the step called `name` may begin: whether, in the database, the steps that it
 * needs have ended as required. Call this only after the workflow has seen that they have ended. A
 * result of `false` then means that the database has lost data: a restarted workflow must first
 * repeat the steps whose end is missing.
 */
export async function haveNeededStepsEnded(
  db: Queryable,
  pipelineId: string,
  name: string,
): Promise<boolean> {
  const steps = await listPlannedSteps(db, pipelineId);
  const step = steps.find((each) => each.name === name);
  return !step || hasEnded(step.status) || step.needs.length === 0 || isReady(steps, name);
}
