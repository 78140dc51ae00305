import type { Context } from "../infra/context";
import type { Route } from "../infra/http/route";
import type { Part } from "../infra/service";
import { artifactFileRoutes } from "./artifact-files";
import { artifactPreviewRoute } from "./artifact-preview";
import { artifactRoutes } from "./artifacts";
import { auditRoute } from "./audit";
import { authRoutes } from "./auth";
import { billingBudgetRoutes } from "./billing-budget";
import { billingDailyRoute } from "./billing-daily";
import { billingEstimateRoute } from "./billing-estimate";
import { billingExportRoute } from "./billing-export";
import { billingRecordRoutes } from "./billing-records";
import { billingSummaryRoute } from "./billing-summary";
import { bootstrapRoute } from "./bootstrap";
import { cancelRoute } from "./cancel-job";
import { datasetRoutes } from "./datasets";
import { deploymentProxyRoutes } from "./deployment-proxy";
import { DeploymentRequests } from "./deployment-requests";
import { deploymentStatsRoute } from "./deployment-stats";
import { deploymentRoutes } from "./deployments";
import { downloadRoutes } from "./downloads";
import { EventFeed } from "./event-feed";
import { eventsRoute } from "./events";
import { fleetRoute } from "./fleet";
import { jobCountsRoute } from "./job-counts";
import { jobEventRoutes } from "./job-events";
import { jobLogRoutes } from "./job-logs";
import { jobMetricsRoute } from "./job-metrics";
import { JobPresenter } from "./job-presenter";
import { jobSubmissionRoutes } from "./job-submissions";
import { jobThroughputRoute } from "./job-throughput";
import { JobWatch } from "./job-watch";
import { jobRoutes } from "./jobs";
import { limitsRoute } from "./limits";
import { lineageRoute } from "./lineage";
import { paymentCustomerRoute } from "./payment-customer";
import { pingRoute } from "./ping";
import { pipelineEstimateRoute } from "./pipeline-estimate";
import { pipelineSubmissionRoute } from "./pipeline-submissions";
import { pipelineRoutes } from "./pipelines";
import { rateCardRoutes } from "./rate-cards";
import { sessionRoute } from "./sessions";
import { storageRoutes } from "./storage";
import { userRoutes } from "./users";
import { workerSamplesRoute } from "./worker-samples";
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
  const feed = new EventFeed(ctx);
  const requests = new DeploymentRequests(ctx);
  return {
    routes: [
      ...jobSubmissionRoutes(ctx),
      jobCountsRoute(ctx, presenter),
      jobThroughputRoute(ctx),
      ...jobRoutes(ctx, presenter),
      cancelRoute(ctx, presenter),
      ...jobLogRoutes(ctx, watch),
      jobMetricsRoute(ctx),
      ...jobEventRoutes(ctx, watch),
      eventsRoute(ctx, feed),
      pipelineSubmissionRoute(ctx),
      pipelineEstimateRoute(ctx),
      ...pipelineRoutes(ctx),
      ...artifactRoutes(ctx),
      ...artifactFileRoutes(ctx),
      ...downloadRoutes(ctx),
      artifactPreviewRoute(ctx),
      lineageRoute(ctx),
      ...storageRoutes(ctx),
      ...datasetRoutes(ctx),
      ...deploymentRoutes(ctx),
      deploymentStatsRoute(ctx, requests),
      ...deploymentProxyRoutes(ctx, requests),
      billingSummaryRoute(ctx),
      billingDailyRoute(ctx),
      ...billingRecordRoutes(ctx),
      billingEstimateRoute(ctx),
      billingExportRoute(ctx),
      ...billingBudgetRoutes(ctx),
      ...rateCardRoutes(ctx),
      auditRoute(ctx),
      pingRoute(ctx),
      sessionRoute(ctx),
      ...authRoutes(ctx),
      limitsRoute(ctx),
      ...userRoutes(ctx),
      paymentCustomerRoute(ctx),
      ...workerRoutes(ctx),
      workerSamplesRoute(ctx),
      fleetRoute(ctx),
      bootstrapRoute(ctx),
    ],
    parts: [watch, feed, requests],
  };
}
