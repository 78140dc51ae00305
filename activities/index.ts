import type { Context } from "../infra/context";
import { createAttemptActivities } from "./attempts";
import { createBootstrapActivities } from "./bootstrap";
import { createDeploymentActivities } from "./deployments";
import { createFinalActivities } from "./finish";
import { createStepActivities } from "./pipeline-steps";
import { createPipelineActivities } from "./pipelines";

/** Everything that workflows may do to the world. */
export function createActivities(ctx: Context) {
  return {
    ...createAttemptActivities(ctx),
    ...createFinalActivities(ctx),
    ...createBootstrapActivities(ctx),
    ...createPipelineActivities(ctx),
    ...createStepActivities(ctx),
    ...createDeploymentActivities(ctx),
  };
}

export type Activities = ReturnType<typeof createActivities>;
