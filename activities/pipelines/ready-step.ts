import { isReady } from "../../core/pipelines/due";
import { hasEnded } from "../../core/pipelines/workflow";
import type { Queryable } from "../../platform/postgres/pool";
import { choosesFrom, listSteps } from "../../services/pipelines/pipeline-steps";

/**
 * Whether the ends of what a step needs are written. A workflow goes on to a step only after that, so where one
 * is not, the database came back with less than it had: a workflow that is started again does that step first.
 */
export async function mayGoOnTo(db: Queryable, pipelineId: string, name: string): Promise<boolean> {
  const steps = (await listSteps(db, [pipelineId])).map((step) => ({
    ...step,
    choosesFrom: choosesFrom(step),
  }));
  const step = steps.find((each) => each.name === name);
  return !step || hasEnded(step.status) || step.needs.length === 0 || isReady(steps, name);
}
