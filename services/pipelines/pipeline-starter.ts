import { Loop } from "../../platform/loop";
import type { Component } from "../../platform/service";
import { reasonOf } from "../../platform/temporal/client";
import type { Context } from "../context";
import { wakePipeline } from "./pipeline-workflows";
import { claimOwed, findOwed, isAnyOwed, type OwedPipeline, postponeTelling } from "./pipelines";

const SWEEP_MS = 1_000;
const BATCH = 20;
const MAX_BACKOFF_S = 10;

/**
 * Starts the workflows of pipelines, and wakes them when there is something to hear. The debt is the
 * pipeline's row: it counts what was asked and what its workflow was told. Workflows that are gone, the
 * reconciler finds.
 */
export class PipelineStarter implements Component {
  readonly name = "pipeline-starter";
  private readonly loop: Loop;
  private readonly inFlight = new Set<Promise<void>>();

  constructor(private readonly ctx: Context) {
    this.loop = new Loop("pipeline-starter", SWEEP_MS, () => this.sweep(), ctx);
  }

  start(): void {
    this.ctx.signals.on("pipeline", this.onAsked);
    this.loop.start();
  }

  async stop(): Promise<void> {
    this.ctx.signals.off("pipeline", this.onAsked);
    await this.loop.stop();
    await Promise.allSettled(this.inFlight);
  }

  /** Right after the commit, in the process that holds the row's first lease; the sweep does what is too much. */
  private readonly onAsked = (pipelineId: string): void => {
    if (this.inFlight.size >= BATCH) return;
    const done: Promise<void> = findOwed(this.ctx.pool, pipelineId)
      .then((owed) => owed && this.tell(owed))
      .catch((error: unknown) => this.ctx.logger.debug({ err: reasonOf(error) }, "not told yet"))
      .finally(() => this.inFlight.delete(done));
    this.inFlight.add(done);
  };

  private async sweep(): Promise<void> {
    if (await isAnyOwed(this.ctx.pool)) await this.tellAll();
  }

  private async tellAll(): Promise<void> {
    for (;;) {
      const owed = await claimOwed(this.ctx.pool, this.ctx.config.outbox.leaseS, BATCH);
      await Promise.all(owed.map((pipeline) => this.tell(pipeline)));
      if (owed.length < BATCH) return;
    }
  }

  private async tell(owed: OwedPipeline): Promise<void> {
    const { pipeline_id: pipelineId, tries } = owed;
    try {
      await wakePipeline(this.ctx, owed);
    } catch (error) {
      const line = { pipeline_id: pipelineId, err: reasonOf(error) };
      if (tries === 0) this.ctx.logger.warn(line, "pipeline's workflow can't be told yet");
      const backoffS = Math.min(MAX_BACKOFF_S, 0.5 * 2 ** Math.min(tries, 10));
      await postponeTelling(this.ctx.pool, pipelineId, backoffS);
    }
  }
}
