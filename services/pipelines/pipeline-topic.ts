import type { Context } from "../context";
import type { Topic } from "../outbox/topic";
import { temporalReceiver } from "../temporal/temporal-receiver";
import { wakePipeline } from "./pipeline-workflows";
import { claimDueWakes, findWake, type PipelineWake, postponeWake } from "./workflow-wakes";

/**
 * Longest delay between two tries to wake a workflow. The delay stays short even if Temporal
 * refuses the call, because nothing else wakes the workflow once the cause is fixed.
 */
const MAX_BACKOFF_S = 10;

/** Starts and wakes the workflows of pipelines. The reconciler finds workflows that are missing. */
export const pipelineTopic = (ctx: Context): Topic<PipelineWake, string> => ({
  ...temporalReceiver(ctx),
  name: "pipeline-starter",
  sweepMs: 1_000,
  subscribe(onCommit) {
    ctx.signals.on("pipeline", onCommit);
    return () => ctx.signals.off("pipeline", onCommit);
  },
  find: (pipelineId) => findWake(ctx.pool, pipelineId),
  claim: (limit) => claimDueWakes(ctx.pool, ctx.config.outbox.leaseS, limit),
  async deliver(wake) {
    await wakePipeline(ctx, wake);
    return "delivered";
  },
  postpone: ({ pipeline_id: pipelineId }, forS) =>
    postponeWake(ctx.pool, pipelineId, Math.min(forS, MAX_BACKOFF_S)),
  logFieldsOf: ({ pipeline_id, tries }) => ({ pipeline_id, tries }),
  callOf: () => "pipeline",
});
