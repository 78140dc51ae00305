import {
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  log,
  setHandler,
  workflowInfo,
} from "@temporalio/workflow";
import type {
  DeploymentEnd,
  DeploymentWorkflowInput,
  PlacementJob,
} from "../core/deployments/workflow";
import { WAKE_SIGNAL } from "../core/workflow-ids";
import { runChildJob } from "./child-job";
import { regular, reliably } from "./reliably";

const wake = defineSignal(WAKE_SIGNAL);

/**
 * One deployment, from its first server to the end of its last.
 *
 *   while it is     there is seen to
 *   active          as many servers as it should have: a placement that is lost is made again by a job
 *   stopping        jobs under way for it are cancelled, and `stopped` is written when nothing serves it
 *   stopped         nothing: this ends
 *
 * All of what is and what should be is in Postgres; a nudge says that something there changed. A cancel
 * pressed in Temporal's UI stops the deployment.
 */
export async function deploymentWorkflow(input: DeploymentWorkflowInput): Promise<DeploymentEnd> {
  CancellationScope.current().cancelRequested.catch(() => handOnCancel(input));
  return await CancellationScope.nonCancellable(() => lookAfter(input));
}

async function handOnCancel(input: DeploymentWorkflowInput): Promise<void> {
  log.info("cancelled through Temporal", { deployment_id: input.deploymentId });
  await CancellationScope.nonCancellable(() => regular.stopDeployment(input));
}

async function lookAfter(input: DeploymentWorkflowInput): Promise<DeploymentEnd> {
  let isWoken = false;
  let placing: Promise<void> | undefined;
  setHandler(wake, () => {
    isWoken = true;
  });
  for (;;) {
    // What comes during the look may not be in it, so that there is another one then.
    isWoken = false;
    const found = await reliably((activities) => activities.lookAfterDeployment(input));
    if (found.isOver) return { status: "stopped" };
    if (found.placing && !placing) {
      placing = place(found.placing).finally(() => {
        placing = undefined;
        isWoken = true;
      });
    }
    if (found.againInMs === 0) continue;
    if (found.againInMs !== undefined) await condition(() => isWoken, found.againInMs);
    else await condition(() => isWoken);
    if (!placing && workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof deploymentWorkflow>(input);
    }
  }
}

/** The job of a placement, until it has ended, however it did: what came of it is in Postgres. */
async function place({ placement, userId, ...input }: PlacementJob): Promise<void> {
  const summary = `placement ${placement} for ${userId}`;
  const isOurs = await runChildJob({ input, jobType: "deploy", userId, summary });
  if (!isOurs) await regular.awaitJobEnd({ jobId: input.jobId });
}
