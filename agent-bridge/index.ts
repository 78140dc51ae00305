import type { Route } from "../platform/http/route";
import type { Context } from "../services/context";
import type { Loops } from "../services/loops";
import { heartbeatRoute } from "./heartbeat";
import { HeartbeatWriter } from "./heartbeat-writer";
import { jobInputRoute } from "./job-inputs";
import { jobLogRoute } from "./job-log";
import { jobResultRoute } from "./job-result";
import { jobUploadRoutes } from "./job-uploads";
import { nextJobRoute } from "./next-job";
import { registerRoute } from "./register";

/** The routes that workers call. */
export const createAgentBridge = (ctx: Context, loops: Loops): Route[] => [
  registerRoute(ctx),
  heartbeatRoute(ctx, new HeartbeatWriter(ctx, loops.samples, loops.metrics)),
  nextJobRoute(ctx, loops.scheduler),
  jobResultRoute(ctx),
  jobLogRoute(ctx),
  ...jobUploadRoutes(ctx),
  jobInputRoute(ctx),
];
