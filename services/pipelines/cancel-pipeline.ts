import type { TenantScope } from "../../core/accounts/permissions";
import { isOver } from "../../core/pipelines/step";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../context";
import { cancelJob } from "../jobs/cancel-job";
import { isSuperseded, listJobsToCancel, lockPipeline, requestPipelineCancel } from "./pipelines";
import { requestWorkflowWake } from "./workflow-wakes";

/**
 * Cancels a pipeline: no further step begins, and its unfinished jobs are cancelled. If this
 * process stops before it has cancelled all jobs, the pipeline's workflow cancels the rest.
 *
 * @param run the run to cancel; undefined: the current one.
 */
export async function cancelPipeline(
  ctx: Context,
  pipelineId: string,
  tenantScope: TenantScope,
  cancelledBy: string,
  run?: number,
): Promise<"requested" | "over" | "unknown"> {
  const outcome = await transaction(ctx.pool, async (db) => {
    const pipeline = await lockPipeline(db, pipelineId, tenantScope);
    if (!pipeline) return "unknown";
    if (isOver(pipeline.status) || isSuperseded({ run }, pipeline)) return "over";
    await requestPipelineCancel(db, pipelineId);
    await requestWorkflowWake(db, pipelineId, ctx.config.outbox.firstLeaseS);
    return "requested";
  });
  if (outcome !== "requested") return outcome;
  await cancelPipelineJobs(ctx, pipelineId, cancelledBy);
  ctx.signals.emit("pipeline", pipelineId);
  return outcome;
}

export async function cancelPipelineJobs(
  ctx: Context,
  pipelineId: string,
  cancelledBy: string,
): Promise<void> {
  for (const jobId of await listJobsToCancel(ctx.pool, pipelineId)) {
    await cancelJob(ctx, jobId, null, cancelledBy);
  }
}
