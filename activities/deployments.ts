import type {
  DeploymentLook,
  DeploymentWorkflowInput,
  PlacementJob,
} from "../core/deployment-workflow";
import { isFinal } from "../core/states";
import type { Context } from "../infra/context";
import { findDeployment, markStopped } from "../infra/database/deployments";
import { findJob } from "../infra/database/jobs";
import { listNeedlessJobs } from "../infra/database/placement-jobs";
import { cancelJob } from "../infra/fleet/cancel-job";
import { placeDeployment } from "../infra/fleet/place-deployment";
import { stopDeployment } from "../infra/fleet/stop-deployment";
import { fileRecord, requireRecord } from "./billing";
import { gone } from "./context";

export function createDeploymentActivities(ctx: Context) {
  return {
    /**
     * Looks at a deployment and does what is to be done for it: makes the job of its next placement, lets
     * go of what it does not need, and ends it when nothing serves it any more. Idempotent.
     */
    async lookAfterDeployment({ deploymentId }: DeploymentWorkflowInput): Promise<DeploymentLook> {
      const deployment = await findDeployment(ctx.pool, deploymentId);
      if (!deployment) throw gone(`deployment ${deploymentId}`);
      if (deployment.status === "stopped") return { isOver: true };
      for (const jobId of await listNeedlessJobs(ctx.pool, deploymentId)) {
        await cancelJob(ctx, jobId, null);
      }
      if (deployment.status === "active") return await placeDeployment(ctx, deploymentId);
      // The stop has closed it: in place of the open one.
      await fileRecord(ctx, await requireRecord(ctx, deployment.job_id));
      const isOver = await markStopped(ctx.pool, deploymentId);
      if (isOver) ctx.logger.info({ deployment_id: deploymentId }, "deployment has ended");
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
      if (!isFinal(job.status)) throw new Error(`${jobId} has not ended yet`);
    },
  };
}
