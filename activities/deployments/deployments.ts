import { isDeepStrictEqual } from "node:util";
import { artifactPrefix } from "../../core/artifacts/artifacts";
import { describeStopped } from "../../core/artifacts/manifest";
import {
  DEPLOYMENT_TYPE,
  type DeploymentAction,
  type DeploymentWorkflowInput,
  type PlacementJob,
} from "../../core/deployments/workflow";
import { isFinal } from "../../core/jobs/states";
import { findDeploymentManifest, replaceStoppedManifest } from "../../services/artifacts/artifacts";
import { checkManifestFile, putManifestFile } from "../../services/artifacts/manifest-file";
import { requireRecord, syncRecordFile } from "../../services/billing/record-file";
import type { Context } from "../../services/context";
import {
  type DeploymentRow,
  findDeployment,
  markStopped,
} from "../../services/deployments/deployments";
import { keepServers } from "../../services/deployments/keep-servers";
import { listUnneededJobs } from "../../services/deployments/placement-jobs";
import { listPlacements } from "../../services/deployments/placements";
import { stopDeployment } from "../../services/deployments/stop-deployment";
import { cancelJob } from "../../services/jobs/cancel-job";
import { missingFromDatabase, notYet, requireJob } from "../context";

export function createDeploymentActivities(ctx: Context) {
  return {
    /**
     * Moves a deployment towards its desired state: inserts the job of its next placement, cancels
     * jobs that the deployment doesn't need, and, after a stop request, marks the deployment
     * stopped when no placement is left. Idempotent.
     */
    async lookAfterDeployment({
      deploymentId,
    }: DeploymentWorkflowInput): Promise<DeploymentAction> {
      const deployment = await findDeployment(ctx.pool, deploymentId);
      if (!deployment) throw missingFromDatabase(`deployment ${deploymentId}`);
      if (deployment.status === "stopped") {
        await writeStoppedManifest(ctx, deployment);
        return { isOver: true };
      }
      for (const jobId of await listUnneededJobs(ctx.pool, deploymentId)) {
        await cancelJob(ctx, jobId, null, "deployment");
      }
      if (deployment.status === "active") return await keepServers(ctx, deploymentId);
      // The stop has made the billing record final. Rewrite the record's file, which may still have
      // the earlier content.
      await syncRecordFile(ctx, deployment);
      const isOver = await markStopped(ctx.pool, deploymentId);
      if (!isOver) return { isOver };
      await writeStoppedManifest(ctx, deployment);
      ctx.logger.info({ deployment_id: deploymentId }, "deployment stopped");
      return { isOver };
    },

    /** Stops the deployment after its workflow was cancelled in Temporal's UI. Idempotent. */
    async stopDeployment({ deploymentId }: DeploymentWorkflowInput): Promise<void> {
      await stopDeployment(ctx, deploymentId, null, "temporal");
    },

    /**
     * Waits for the end of a job whose workflow was started by another caller. Throws a retryable
     * error until the job has ended.
     */
    async awaitJobEnd({ jobId }: Pick<PlacementJob, "jobId">): Promise<void> {
      const job = await requireJob(ctx.pool, jobId);
      if (!isFinal(job.status)) throw notYet(`${jobId} has not ended yet`);
    },
  };
}

/**
 * Writes the final manifest of a stopped deployment: first the file, then the registry's row. So a
 * final manifest in the row proves that the file was written. If the row already has a different
 * final manifest, replaces it. The old one describes an earlier stop, which a restore of the
 * database has undone.
 */
async function writeStoppedManifest(
  ctx: Context,
  { deployment_id: deploymentId, job_id: jobId }: DeploymentRow,
): Promise<void> {
  const manifest = await findDeploymentManifest(ctx.pool, deploymentId);
  if (!manifest) return;
  const placements = await listPlacements(ctx.pool, [deploymentId]);
  const { total_cost_usd: costUsd, metrics } = await requireRecord(ctx, jobId);
  const stopped = describeStopped(manifest, {
    inferenceUrl: placements.findLast(({ inference_url: url }) => url)?.inference_url ?? null,
    costUsd,
    days: metrics.deployment_lifetime_days,
  });
  const folder = artifactPrefix(DEPLOYMENT_TYPE, deploymentId);
  if (!isDeepStrictEqual(stopped, manifest)) {
    await putManifestFile(ctx, folder, stopped);
    await replaceStoppedManifest(ctx.pool, deploymentId, stopped);
  }
  // Between the two writes, another process may have read the old manifest from the row and written
  // it to the file. So compare the file with the new row.
  await checkManifestFile(ctx, deploymentId, folder);
}
