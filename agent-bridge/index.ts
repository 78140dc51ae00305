import type { Context } from "../infra/context";
import type { Route } from "../infra/http/route";
import type { Part } from "../infra/service";
import { BootstrapStarter } from "./bootstrap-starter";
import { FleetMonitor } from "./fleet-monitor";
import { heartbeatRoute } from "./heartbeat";
import { jobInputRoute } from "./job-inputs";
import { jobLogRoute } from "./job-log";
import { jobResultRoute } from "./job-result";
import { jobUploadRoutes } from "./job-uploads";
import { nextJobRoute } from "./next-job";
import { Pulse } from "./pulse";
import { Reconciler } from "./reconciler";
import { registerRoute } from "./register";
import { Relay } from "./relay";
import { Scheduler } from "./scheduler";
import { Waiters } from "./waiters";

export interface AgentBridge {
  routes: Route[];
  /** What runs beside the routes: scheduler, fleet monitor, relay, reconciler. */
  parts: Part[];
}

/** Everything between the control plane and its workers. */
export function createAgentBridge(ctx: Context): AgentBridge {
  const waiters = new Waiters();
  const scheduler = new Scheduler(ctx, waiters);
  return {
    routes: [
      registerRoute(ctx),
      heartbeatRoute(ctx, new Pulse(ctx)),
      nextJobRoute(ctx, scheduler, waiters),
      jobResultRoute(ctx),
      jobLogRoute(ctx),
      ...jobUploadRoutes(ctx),
      jobInputRoute(ctx),
    ],
    parts: [
      new Relay(ctx),
      scheduler,
      new FleetMonitor(ctx),
      new Reconciler(ctx),
      new BootstrapStarter(ctx),
    ],
  };
}
