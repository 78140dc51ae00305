import type { TenantScope } from "../../core/accounts/principal";
import { isOver } from "../../core/pipelines/step";
import { transaction } from "../../platform/postgres/transaction";
import type { Context } from "../context";
import { cancelJob } from "../jobs/cancel-job";
import { askWorkflow, listUnfinishedJobs, lockPipeline, requestPipelineCancel } from "./pipelines";

/**
 * From now on no step of it is begun, and the jobs under way are cancelled as their user would. Its
 * workflow follows: it does the same once more, should this process end in between.
 */
export async function cancelPipeline(
  ctx: Context,
  pipelineId: string,
  tenantScope: TenantScope,
  cancelledBy: string,
): Promise<"requested" | "over" | "unknown"> {
  const answer = await transaction(ctx.pool, async (db) => {
    const pipeline = await lockPipeline(db, pipelineId, tenantScope);
    if (!pipeline) return "unknown";
    if (isOver(pipeline.status)) return "over";
    await requestPipelineCancel(db, pipelineId);
    await askWorkflow(db, pipelineId, ctx.config.outbox.firstLeaseS);
    return "requested";
  });
  if (answer !== "requested") return answer;
  await cancelItsJobs(ctx, pipelineId, cancelledBy);
  ctx.signals.emit("pipeline", pipelineId);
  return answer;
}

export async function cancelItsJobs(
  ctx: Context,
  pipelineId: string,
  cancelledBy: string,
): Promise<void> {
  for (const jobId of await listUnfinishedJobs(ctx.pool, pipelineId)) {
    await cancelJob(ctx, jobId, null, cancelledBy);
  }
}
