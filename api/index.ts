import type { Context } from "../infra/context";
import type { Route } from "../infra/http/app";
import { artifactRoutes } from "./artifacts";
import { authRoutes } from "./auth";
import { billingRoutes } from "./billing";
import { jobRoutes } from "./jobs";
import { submitJobRoutes } from "./submit-job";
import { workerRoutes } from "./workers";

/** Every route for users. */
export function createApi(ctx: Context): Route[] {
  return [
    ...submitJobRoutes(ctx),
    ...jobRoutes(ctx),
    ...artifactRoutes(ctx),
    ...billingRoutes(ctx),
    ...authRoutes(),
    ...workerRoutes(ctx),
  ];
}
