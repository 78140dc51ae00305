import { DEPLOYMENT_WORKFLOW, type DeploymentWorkflowInput } from "../../core/deployments/workflow";
import { deploymentIdOfWorkflow, deploymentWorkflowId } from "../../core/workflow-ids";
import type { Context } from "../context";
import type { WorkflowKind } from "../temporal/compared-rows";
import { deleteStuckWrites } from "../temporal/stuck-writes";
import { wakeWorkflow } from "../temporal/wake-workflow";
import { isIdle, isOpen, readWorkflow } from "../temporal/workflow-state";
import {
  DEPLOYMENTS,
  type DeploymentWake,
  findComparedDeployment,
  recordWake,
} from "./workflow-wakes";

export const deploymentWorkflows = (ctx: Context): WorkflowKind => ({
  types: [DEPLOYMENT_WORKFLOW],
  idOf: deploymentIdOfWorkflow,
  rows: DEPLOYMENTS,
  compare: (deploymentId) => compareDeployment(ctx, deploymentId),
});

/** Wakes a deployment's workflow, or starts it if it does not run. */
export async function wakeDeployment(
  ctx: Context,
  { deployment_id: deploymentId, user_id: userId, asked: version }: DeploymentWake,
): Promise<void> {
  const input: DeploymentWorkflowInput = { deploymentId };
  await wakeWorkflow(ctx, {
    workflow: DEPLOYMENT_WORKFLOW,
    workflowId: deploymentWorkflowId(deploymentId),
    input,
    userId,
    summary: `deployment of ${userId}`,
  });
  await recordWake(ctx.pool, deploymentId, version);
}

/**
 * Compares a deployment's workflow with its row and repairs differences:
 * - The deployment is live, but its workflow is not open: starts the workflow again.
 * - The deployment is stopped, or missing because the database was restored to an earlier state:
 *   terminates its open workflow.
 * - The workflow is open and runs no task or activity, but has work to do: wakes the workflow,
 *   which then reads the deployment's whole state.
 */
async function compareDeployment(ctx: Context, deploymentId: string): Promise<void> {
  const { pool, logger, metrics } = ctx;
  const workflowId = deploymentWorkflowId(deploymentId);
  const workflow = await readWorkflow(ctx, workflowId);
  // Read Postgres after Temporal, so that the row is at least as new as the workflow: a row is
  // written before its workflow starts, and is `stopped` before its workflow closes.
  const row = await findComparedDeployment(pool, deploymentId);
  const isOver = row === undefined || row.status === "stopped";
  if (isOpen(workflow) !== isOver) {
    // A busy workflow reads the deployment again anyway, and each wake signal adds to its history.
    const isAtWork = workflow.hasTask || workflow.activities.length > 0;
    if (!row?.is_due || isAtWork) return;
    metrics.repairs.inc({ repair: "asleep" });
    await wakeDeployment(ctx, row);
    return;
  }
  await deleteStuckWrites(pool, workflowId, null);
  const fields = { deployment_id: deploymentId };
  if (!isOver) {
    logger.warn(fields, "deployment workflow is gone; restarting it");
    metrics.repairs.inc({ repair: "gone" });
    await wakeDeployment(ctx, row);
  } else if (row === undefined || isIdle(workflow)) {
    logger.warn(fields, "deployment workflow outlived its deployment; terminating it");
    metrics.repairs.inc({ repair: "orphan" });
    await workflow.terminate("the deployment is over or not in the database");
  }
}
