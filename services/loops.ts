import type { Component } from "../platform/service";
import { Sweeper } from "./artifacts/sweeper";
import { BillingExporter } from "./billing/billing-exporter";
import { MonthCloser } from "./billing/month-closer";
import type { Context } from "./context";
import { DeploymentStarter } from "./deployments/deployment-starter";
import { BootstrapStarter } from "./fleet/bootstrap-starter";
import { FleetMonitor } from "./fleet/fleet-monitor";
import { LongPolls } from "./fleet/long-polls";
import { WorkerSamples } from "./fleet/samples-writer";
import { Scheduler } from "./fleet/scheduler";
import { JobMetrics } from "./jobs/metrics-writer";
import { Relay } from "./jobs/relay";
import { PipelineStarter } from "./pipelines/pipeline-starter";
import { Retention } from "./retention";
import { Reconciler } from "./temporal/reconciler";

/** What a process does by itself, whoever calls it. */
export interface Loops {
  /** These four are also told things by the workers' routes. */
  scheduler: Scheduler;
  longPolls: LongPolls;
  samples: WorkerSamples;
  metrics: JobMetrics;
  /** What runs in every process. */
  parts: Component[];
  /** What runs where workers are served: a process that nobody can reach must not judge who is silent. */
  watch: Component[];
}

export function createLoops(ctx: Context): Loops {
  const longPolls = new LongPolls();
  const scheduler = new Scheduler(ctx, longPolls);
  const samples = new WorkerSamples(ctx);
  const metrics = new JobMetrics(ctx);
  return {
    scheduler,
    longPolls,
    samples,
    metrics,
    parts: [
      new Relay(ctx),
      scheduler,
      new Reconciler(ctx),
      new BootstrapStarter(ctx),
      new PipelineStarter(ctx),
      new DeploymentStarter(ctx),
      new Sweeper(ctx),
      new Retention(ctx),
      new MonthCloser(ctx),
      new BillingExporter(ctx),
    ],
    watch: [new FleetMonitor(ctx), samples, metrics],
  };
}
