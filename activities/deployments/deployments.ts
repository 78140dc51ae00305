import { artifactPrefix, MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { describeStopped } from "../../core/artifacts/manifest";
import type {
  DeploymentLook,
  DeploymentWorkflowInput,
  PlacementJob,
} from "../../core/deployments/workflow";
import { isFinal } from "../../core/jobs/states";
import { putJson } from "../../platform/store/object-store";
import { findDeploymentManifest, replaceManifest } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import {
  type DeploymentRow,
  findDeployment,
  markStopped,
} from "../../services/deployments/deployments";
import { placeDeployment } from "../../services/deployments/place-deployment";
import { listNeedlessJobs } from "../../services/deployments/placement-jobs";
import { listPlacements } from "../../services/deployments/placements";
import { stopDeployment } from "../../services/deployments/stop-deployment";
import { cancelJob } from "../../services/jobs/cancel-job";
import { findJob } from "../../services/jobs/jobs";
import { fileRecord, requireRecord } from "../billing/billing";
import { gone, notYet } from "../context";

export function createDeploymentActivities(ctx: Context) {
  return {
    /**
     * Looks at a deployment and does what is to be done for it: makes the job of its next placement, lets
     * go of what it does not need, and ends it when nothing serves it any more. Idempotent.
     */
    async lookAfterDeployment({ deploymentId }: DeploymentWorkflowInput): Promise<DeploymentLook> {
      const deployment = await findDeployment(ctx.pool, deploymentId);
      if (!deployment) throw gone(`deployment ${deploymentId}`);
      if (deployment.status === "stopped") {
        await fileStopped(ctx, deployment);
        return { isOver: true };
      }
      for (const jobId of await listNeedlessJobs(ctx.pool, deploymentId)) {
        await cancelJob(ctx, jobId, null, "deployment");
      }
      if (deployment.status === "active") return await placeDeployment(ctx, deploymentId);
      // The stop has closed it: in place of the open one.
      await fileRecord(ctx, await requireRecord(ctx, deployment.job_id));
      const isOver = await markStopped(ctx.pool, deploymentId);
      if (!isOver) return { isOver };
      await fileStopped(ctx, deployment);
      ctx.logger.info({ deployment_id: deploymentId }, "deployment has ended");
      return { isOver };
    },

    /** Stops the deployment as its user would: a cancel pressed in Temporal's UI. Idempotent. */
    async stopDeployment({ deploymentId }: DeploymentWorkflowInput): Promise<void> {
      await stopDeployment(ctx, deploymentId, null, "temporal");
    },

    /** Returns when a job has ended that another workflow looks after; fails, to be tried again, until then. */
    async awaitJobEnd({ jobId }: Pick<PlacementJob, "jobId">): Promise<void> {
      const job = await findJob(ctx.pool, jobId, null);
      if (!job) throw gone(`job ${jobId}`);
      if (!isFinal(job.status)) throw notYet(`${jobId} has not ended yet`);
    },
  };
}

/** The last manifest of a deployment that has stopped: the file, then the row, which says that both are done. */
async function fileStopped(
  ctx: Context,
  { deployment_id: deploymentId, job_id: jobId }: DeploymentRow,
): Promise<void> {
  const manifest = await findDeploymentManifest(ctx.pool, deploymentId);
  if (!manifest || manifest.status === "stopped") return;
  const placements = await listPlacements(ctx.pool, [deploymentId]);
  const { total_cost_usd: costUsd, metrics } = await requireRecord(ctx, jobId);
  const stopped = describeStopped(manifest, {
    inferenceUrl: placements.findLast(({ inference_url: url }) => url)?.inference_url ?? null,
    costUsd,
    days: metrics.deployment_lifetime_days,
  });
  await putJson(ctx.store, `${artifactPrefix("deploy", deploymentId)}${MANIFEST_FILE}`, stopped);
  await replaceManifest(ctx.pool, deploymentId, stopped);
}
