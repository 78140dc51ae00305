import type { Context } from "../infra/context";
import type { Route } from "../infra/http/route";
import type { Part } from "../infra/service";
import { BillingExporter } from "./billing-exporter";
import { BootstrapStarter } from "./bootstrap-starter";
import { DeploymentStarter } from "./deployment-starter";
import { FleetMonitor } from "./fleet-monitor";
import { heartbeatRoute } from "./heartbeat";
import { jobInputRoute } from "./job-inputs";
import { jobLogRoute } from "./job-log";
import { JobMetrics } from "./job-metrics";
import { jobResultRoute } from "./job-result";
import { jobUploadRoutes } from "./job-uploads";
import { MonthCloser } from "./month-closer";
import { nextJobRoute } from "./next-job";
import { PipelineStarter } from "./pipeline-starter";
import { Pulse } from "./pulse";
import { Reconciler } from "./reconciler";
import { registerRoute } from "./register";
import { Relay } from "./relay";
import { Retention } from "./retention";
import { Scheduler } from "./scheduler";
import { Sweeper } from "./sweeper";
import { Waiters } from "./waiters";
import { WorkerSamples } from "./worker-samples";

export interface AgentBridge {
  routes: Route[];
  /** What runs in every process: scheduler, relay, reconciler, sweeper, retention, export. */
  parts: Part[];
  /** What runs where workers are served: a process that nobody can reach must not judge who is silent. */
  watch: Part[];
}

/** Everything between the control plane and its workers. */
export function createAgentBridge(ctx: Context): AgentBridge {
  const waiters = new Waiters();
  const scheduler = new Scheduler(ctx, waiters);
  const samples = new WorkerSamples(ctx);
  const metrics = new JobMetrics(ctx);
  return {
    routes: [
      registerRoute(ctx),
      heartbeatRoute(ctx, new Pulse(ctx, samples, metrics)),
      nextJobRoute(ctx, scheduler, waiters),
      jobResultRoute(ctx),
      jobLogRoute(ctx),
      ...jobUploadRoutes(ctx),
      jobInputRoute(ctx),
    ],
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
