import type { Route } from "../platform/http/route";
import type { Component } from "../platform/service";
import type { Context } from "../services/context";
import { apiKeyRoutes } from "./accounts/api-keys";
import { auditRoute } from "./accounts/audit";
import { EventFeed } from "./accounts/event-feed";
import { eventsRoute } from "./accounts/events";
import { limitsRoute } from "./accounts/limits";
import { pingRoute } from "./accounts/ping";
import { sessionRoute } from "./accounts/sessions";
import { userRoutes } from "./accounts/users";
import { artifactFileRoutes } from "./artifacts/artifact-files";
import { artifactPreviewRoute } from "./artifacts/artifact-preview";
import { artifactRoutes } from "./artifacts/artifacts";
import { datasetRoute } from "./artifacts/datasets";
import { downloadRoutes } from "./artifacts/downloads";
import { lineageRoute } from "./artifacts/lineage";
import { billingBudgetRoutes } from "./billing/billing-budget";
import { billingDailyRoute } from "./billing/billing-daily";
import { billingEstimateRoute } from "./billing/billing-estimate";
import { billingExportRoute } from "./billing/billing-export";
import { billingRecordRoutes } from "./billing/billing-records";
import { billingSummaryRoute } from "./billing/billing-summary";
import { paymentCustomerRoute } from "./billing/payment-customer";
import { rateCardRoutes } from "./billing/rate-cards";
import { storageRoutes } from "./billing/storage";
import { deploymentProxyRoutes } from "./deployments/deployment-proxy";
import { DeploymentRequests } from "./deployments/deployment-requests";
import { deploymentStatsRoute } from "./deployments/deployment-stats";
import { deploymentRoutes } from "./deployments/deployments";
import { bootstrapRoute } from "./fleet/bootstrap";
import { fleetRoute } from "./fleet/fleet";
import { workerSamplesRoute } from "./fleet/worker-samples";
import { workerRoutes } from "./fleet/workers";
import { cancelRoute } from "./jobs/cancel-job";
import { jobCountsRoute } from "./jobs/job-counts";
import { jobEventsRoute } from "./jobs/job-events";
import { jobLogRoute } from "./jobs/job-logs";
import { jobMetricsRoute } from "./jobs/job-metrics";
import { JobPresenter } from "./jobs/job-presenter";
import { jobSubmissionRoutes } from "./jobs/job-submissions";
import { jobThroughputRoute } from "./jobs/job-throughput";
import { JobWatch } from "./jobs/job-watch";
import { jobRoutes } from "./jobs/jobs";
import { pipelineEstimateRoute } from "./pipelines/pipeline-estimate";
import { pipelineSubmissionRoute } from "./pipelines/pipeline-submissions";
import { pipelineRoutes } from "./pipelines/pipelines";

export interface Api {
  routes: Route[];
  /** Background components that the routes need. */
  components: Component[];
}

/** All routes for users, and the components behind them. */
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
      jobLogRoute(ctx, watch),
      jobMetricsRoute(ctx),
      jobEventsRoute(ctx, watch),
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
      datasetRoute(ctx),
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
      ...apiKeyRoutes(ctx),
      limitsRoute(ctx),
      ...userRoutes(ctx),
      paymentCustomerRoute(ctx),
      ...workerRoutes(ctx),
      workerSamplesRoute(ctx),
      fleetRoute(ctx),
      bootstrapRoute(ctx),
    ],
    components: [watch.loop, feed.loop, requests],
  };
}
