import type { Context } from "../infra/context";
import type { Route } from "../infra/http/route";
import type { Part } from "../infra/service";
import { artifactRoutes } from "./artifacts";
import { authRoutes } from "./auth";
import { billingRoutes } from "./billing";
import { bootstrapRoute } from "./bootstrap";
import { cancelRoute } from "./cancel-job";
import { datasetRoutes } from "./datasets";
import { jobEventRoutes } from "./job-events";
import { jobLogRoutes } from "./job-logs";
import { JobPresenter } from "./job-presenter";
import { jobSubmissionRoutes } from "./job-submissions";
import { JobWatch } from "./job-watch";
import { jobRoutes } from "./jobs";
import { userRoutes } from "./users";
import { workerRoutes } from "./workers";

export interface Api {
  routes: Route[];
  /** What runs beside the routes. */
  parts: Part[];
}

/** Everything for users. */
export function createApi(ctx: Context): Api {
  const presenter = new JobPresenter(ctx);
  const watch = new JobWatch(ctx);
  return {
    routes: [
      ...jobSubmissionRoutes(ctx),
      ...jobRoutes(ctx, presenter),
      cancelRoute(ctx, presenter),
      ...jobLogRoutes(ctx, watch),
      ...jobEventRoutes(ctx, watch),
      ...artifactRoutes(ctx),
      ...datasetRoutes(ctx),
      ...billingRoutes(ctx),
      ...authRoutes(ctx),
      ...userRoutes(ctx),
      ...workerRoutes(ctx),
      bootstrapRoute(ctx),
    ],
    parts: [watch],
  };
}
