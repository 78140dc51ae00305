import {
  ActivityFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  log,
  setHandler,
  workflowInfo,
} from "@temporalio/workflow";
import {
  DEPLOYMENT_TYPE,
  type DeploymentEnd,
  type DeploymentWorkflowInput,
  type PlacementJob,
} from "../core/deployments/workflow";
import { WAKE_SIGNAL } from "../core/workflow-ids";
import { localFirst, regularActivities } from "./activity-proxies";
import { runChildJob } from "./child-job";

const wake = defineSignal(WAKE_SIGNAL);

/**
 * Runs one deployment, from the start of its first server to the end of its last server.
 *
 *   status          the workflow
 *   active          keeps the desired number of servers: a job replaces each lost placement
 *                   (services/deployments/keep-servers.ts)
 *   stopping        cancels the deployment's jobs; writes `stopped` when no server is left
 *   stopped         ends
 *
 * Postgres stores the actual and the desired state. The wake signal tells the workflow that one of
 * these states has changed. Cancelling the workflow in Temporal's UI stops the deployment.
 */
export async function deploymentWorkflow(input: DeploymentWorkflowInput): Promise<DeploymentEnd> {
  CancellationScope.current().cancelRequested.catch(() => forwardCancel(input));
  return await CancellationScope.nonCancellable(() => runDeployment(input));
}

async function forwardCancel(input: DeploymentWorkflowInput): Promise<void> {
  log.info("cancelled through Temporal", { deployment_id: input.deploymentId });
  await CancellationScope.nonCancellable(() => regularActivities.stopDeployment(input));
}

async function runDeployment(input: DeploymentWorkflowInput): Promise<DeploymentEnd> {
  let isWoken = false;
  let placing: Promise<void> | undefined;
  setHandler(wake, () => {
    isWoken = true;
  });
  for (;;) {
    // Reset the flag before the activity: a wake signal that arrives while the activity runs may
    // report a change that the activity has missed.
    isWoken = false;
    const action = await localFirst((activities) => activities.lookAfterDeployment(input));
    if (action.isOver) return { status: "stopped" };
    if (action.placing && !placing) {
      placing = runPlacementJob(action.placing).finally(() => {
        placing = undefined;
        isWoken = true;
      });
    }
    if (action.againInMs === 0) continue;
    if (action.againInMs !== undefined) await condition(() => isWoken, action.againInMs);
    else await condition(() => isWoken);
    if (!placing && workflowInfo().continueAsNewSuggested) {
      await continueAsNew<typeof deploymentWorkflow>(input);
    }
  }
}

/** Runs a placement's job until it has ended. The result is in Postgres. */
async function runPlacementJob({ placement, userId, ...input }: PlacementJob): Promise<void> {
  const summary = `placement ${placement} for ${userId}`;
  const isOurs = await runChildJob({ input, jobType: DEPLOYMENT_TYPE, userId, summary });
  if (isOurs) return;
  try {
    await regularActivities.awaitJobEnd({ jobId: input.jobId });
  } catch (error) {
    // The job is missing, because the database was restored to an earlier state. The next
    // `lookAfterDeployment` decides from that state.
    if (!(error instanceof ActivityFailure)) throw error;
  }
}
