import type { Context } from "../services/context";
import { createDeploymentActivities } from "./deployments/deployments";
import { createBootstrapActivities } from "./fleet/bootstrap";
import { createAttemptActivities } from "./jobs/attempts";
import { createFinalActivities } from "./jobs/finish-job";
import { createStepActivities } from "./pipelines/pipeline-steps";
import { createPipelineActivities } from "./pipelines/pipelines";

/** All activities. Their names are in workflow histories: don't rename an activity. */
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
