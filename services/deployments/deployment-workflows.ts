import { DEPLOYMENT_WORKFLOW, type DeploymentWorkflowInput } from "../../core/deployments/workflow";
import { deploymentIdOfWorkflow, deploymentWorkflowId } from "../../core/workflow-ids";
import type { Context } from "../context";
import { forgetStuckWrites } from "../jobs/stuck-writes";
import { wakeWorkflow } from "../temporal/wake-workflow";
import type { WorkflowKind } from "../temporal/workflow-kind";
import { isIdle, isOpen, readWorkflow } from "../temporal/workflow-state";
import {
  DEPLOYMENTS,
  type DueWake,
  findComparedDeployment,
  listStandingDeployments,
  recordWake,
} from "./due-wakes";

/** Deployments as the reconciler compares them. */
export const deploymentWorkflows = (ctx: Context): WorkflowKind => ({
  types: [DEPLOYMENT_WORKFLOW],
  idOf: deploymentIdOfWorkflow,
  listStanding: (forS, afterId, limit) => listStandingDeployments(ctx.pool, forS, afterId, limit),
  rows: DEPLOYMENTS,
  compare: (deploymentId) => compareDeployment(ctx, deploymentId),
});

/** Starts a deployment's workflow, or wakes the one that runs. */
export async function wakeDeployment(
  ctx: Context,
  { deployment_id: deploymentId, user_id: userId, asked }: DueWake,
): Promise<void> {
  const input: DeploymentWorkflowInput = { deploymentId };
  await wakeWorkflow(ctx, {
    workflow: DEPLOYMENT_WORKFLOW,
    workflowId: deploymentWorkflowId(deploymentId),
    input,
    userId,
    summary: `deployment of ${userId}`,
  });
  await recordWake(ctx.pool, deploymentId, asked);
}

/**
 * Starts a workflow again that is gone while its deployment lives, and ends one whose deployment is not there,
 * after the database came back with less than it had. One that runs is not disturbed: it looks at all there is
 * whenever it is woken.
 */
async function compareDeployment(ctx: Context, deploymentId: string): Promise<void> {
  const { pool, logger, metrics } = ctx;
  const workflowId = deploymentWorkflowId(deploymentId);
  const workflow = await readWorkflow(ctx, workflowId);
  // Read after Temporal: a row is written before its workflow starts, and says `stopped` before that closes.
  const row = await findComparedDeployment(pool, deploymentId);
  const isOver = row === undefined || row.status === "stopped";
  if (isOpen(workflow) !== isOver) return;
  await forgetStuckWrites(pool, workflowId, null);
  if (!isOver) {
    logger.warn({ deployment_id: deploymentId }, "its workflow is gone; starting it again");
    metrics.repairs.inc({ repair: "gone" });
    await wakeDeployment(ctx, row);
  } else if (row === undefined || isIdle(workflow)) {
    logger.warn({ deployment_id: deploymentId }, "its workflow outlived it; ending it");
    metrics.repairs.inc({ repair: "orphan" });
    await workflow.terminate("its deployment is not in the database, or is over");
  }
}
