import type { Route } from "../platform/http/route";
import type { Context } from "../services/context";
import type { Loops } from "../services/loops";
import { heartbeatRoute } from "./heartbeat";
import { jobInputRoute } from "./job-inputs";
import { jobLogRoute } from "./job-log";
import { jobResultRoute } from "./job-result";
import { jobUploadRoutes } from "./job-uploads";
import { nextJobRoute } from "./next-job";
import { Pulse } from "./pulse";
import { registerRoute } from "./register";

/** What workers call. */
export const createAgentBridge = (ctx: Context, loops: Loops): Route[] => [
  registerRoute(ctx),
  heartbeatRoute(ctx, new Pulse(ctx, loops.samples, loops.metrics)),
  nextJobRoute(ctx, loops.scheduler, loops.waiters),
  jobResultRoute(ctx),
  jobLogRoute(ctx),
  ...jobUploadRoutes(ctx),
  jobInputRoute(ctx),
];
