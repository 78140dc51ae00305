import type { Component } from "../platform/service";
import { Sweeper } from "./artifacts/file-sweeper";
import { BillingExporter } from "./billing/billing-exporter";
import { MonthCloser } from "./billing/close-months";
import type { Context } from "./context";
import { deploymentTopic } from "./deployments/deployment-topic";
import { PlacementSweep } from "./deployments/placement-sweep";
import { bootstrapTopic } from "./fleet/bootstrap-topic";
import { FleetMonitor } from "./fleet/fleet-monitor";
import { SamplesWriter } from "./fleet/samples-writer";
import { Scheduler } from "./fleet/scheduler";
import { Archiver } from "./jobs/archiver";
import { jobTopic } from "./jobs/job-topic";
import { MetricsWriter } from "./jobs/metrics-writer";
import { Courier } from "./outbox/courier";
import { pipelineTopic } from "./pipelines/pipeline-topic";
import { Retention } from "./retention";
import { Reconciler } from "./temporal/reconciler";

/** The background loops of a process. */
export interface Loops {
  /** The worker routes (agent-bridge) use `scheduler`, `samples` and `metrics` directly. */
  scheduler: Scheduler;
  samples: SamplesWriter;
  metrics: MetricsWriter;
  /** Run in every process. */
  components: Component[];
  /**
   * Run only in processes that serve the worker routes. Other processes receive no requests from
   * workers, so they have no worker reports to write and can't detect silent workers.
   */
  watch: Component[];
}

export function createLoops(ctx: Context): Loops {
  const scheduler = new Scheduler(ctx);
  const samples = new SamplesWriter(ctx);
  const metrics = new MetricsWriter(ctx);
  return {
    scheduler,
    samples,
    metrics,
    components: [
      new Courier(ctx, jobTopic(ctx)),
      scheduler,
      new Reconciler(ctx),
      new Courier(ctx, bootstrapTopic(ctx)),
      new Courier(ctx, pipelineTopic(ctx)),
      new Courier(ctx, deploymentTopic(ctx)),
      new PlacementSweep(ctx),
      new Sweeper(ctx),
      new Retention(ctx),
      new Archiver(ctx),
      new MonthCloser(ctx),
      new BillingExporter(ctx),
    ],
    watch: [new FleetMonitor(ctx), samples, metrics],
  };
}
