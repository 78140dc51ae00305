import { isReady } from "../../core/pipelines/due";
import { hasEnded } from "../../core/pipelines/workflow";
import type { Queryable } from "../../platform/postgres/pool";
import { choosesFrom, listSteps } from "../../services/pipelines/pipeline-steps";

/**
 * Whether the ends of all steps that a step needs are in the database. A workflow begins a step
 * only after that. If one is missing, the database has lost data, and a restarted workflow must
 * repeat that step first.
 */
export async function mayGoOnTo(db: Queryable, pipelineId: string, name: string): Promise<boolean> {
  const steps = (await listSteps(db, [pipelineId])).map((step) => ({
    ...step,
    choosesFrom: choosesFrom(step),
  }));
  const step = steps.find((each) => each.name === name);
  return !step || hasEnded(step.status) || step.needs.length === 0 || isReady(steps, name);
}
