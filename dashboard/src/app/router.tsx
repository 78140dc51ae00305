import { createRootRoute, createRoute, createRouter } from "@tanstack/react-router";
import { readArtifactSearch, readArtifactsSearch, readCompareSearch } from "../artifacts/search";
import { readBillingSearch } from "../billing/search";
import { readDeploymentSearch, readDeploymentsSearch } from "../deployments/search";
import { readJobSearch, readJobsSearch } from "../jobs/search";
import { readKeysSearch } from "../keys/search";
import {
  readNewPipelineSearch,
  readPipelineSearch,
  readPipelinesSearch,
} from "../pipelines/search";
import { readSubmitSearch } from "../submit/search";
import { readWorkersSearch } from "../workers/search";
import { lazyPage } from "./lazy-page";
import { NotFound, PageFailed } from "./page-failed";
import { parseSearch, stringifySearch } from "./search-params";
import { Shell } from "./shell";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyPage(() => import("../overview/overview-page"), "OverviewPage"),
});

const jobs = createRoute({
  getParentRoute: () => root,
  path: "/jobs",
  validateSearch: readJobsSearch,
  component: lazyPage(() => import("../jobs/jobs-page"), "JobsPage"),
});

const job = createRoute({
  getParentRoute: () => root,
  path: "/jobs/$jobId",
  validateSearch: readJobSearch,
  component: lazyPage(() => import("../jobs/job-page"), "JobPage"),
});

const pipelines = createRoute({
  getParentRoute: () => root,
  path: "/pipelines",
  validateSearch: readPipelinesSearch,
  component: lazyPage(() => import("../pipelines/pipelines-page"), "PipelinesPage"),
});

const newPipeline = createRoute({
  getParentRoute: () => root,
  path: "/pipelines/new",
  validateSearch: readNewPipelineSearch,
  component: lazyPage(() => import("../pipelines/new/new-pipeline-page"), "NewPipelinePage"),
});

const pipeline = createRoute({
  getParentRoute: () => root,
  path: "/pipelines/$pipelineId",
  validateSearch: readPipelineSearch,
  component: lazyPage(() => import("../pipelines/pipeline-page"), "PipelinePage"),
});

const deployments = createRoute({
  getParentRoute: () => root,
  path: "/deployments",
  validateSearch: readDeploymentsSearch,
  component: lazyPage(() => import("../deployments/deployments-page"), "DeploymentsPage"),
});

const deployment = createRoute({
  getParentRoute: () => root,
  path: "/deployments/$deploymentId",
  validateSearch: readDeploymentSearch,
  component: lazyPage(() => import("../deployments/deployment-page"), "DeploymentPage"),
});

const workers = createRoute({
  getParentRoute: () => root,
  path: "/workers",
  validateSearch: readWorkersSearch,
  component: lazyPage(() => import("../workers/workers-page"), "WorkersPage"),
});

const worker = createRoute({
  getParentRoute: () => root,
  path: "/workers/$workerId",
  component: lazyPage(() => import("../workers/worker-page"), "WorkerPage"),
});

const addWorker = createRoute({
  getParentRoute: () => root,
  path: "/workers/add/ssh",
  component: lazyPage(() => import("../workers/add-worker-page"), "AddWorkerPage"),
});

const artifacts = createRoute({
  getParentRoute: () => root,
  path: "/artifacts",
  validateSearch: readArtifactsSearch,
  component: lazyPage(() => import("../artifacts/artifacts-page"), "ArtifactsPage"),
});

const compare = createRoute({
  getParentRoute: () => root,
  path: "/artifacts/compare",
  validateSearch: readCompareSearch,
  component: lazyPage(() => import("../artifacts/compare/compare-page"), "ComparePage"),
});

const artifact = createRoute({
  getParentRoute: () => root,
  path: "/artifacts/$artifactId",
  validateSearch: readArtifactSearch,
  component: lazyPage(() => import("../artifacts/artifact-page"), "ArtifactPage"),
});

const submit = createRoute({
  getParentRoute: () => root,
  path: "/submit",
  validateSearch: readSubmitSearch,
  component: lazyPage(() => import("../submit/submit-page"), "SubmitPage"),
});

const billing = createRoute({
  getParentRoute: () => root,
  path: "/billing",
  validateSearch: readBillingSearch,
  component: lazyPage(() => import("../billing/billing-page"), "BillingPage"),
});

const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  validateSearch: readKeysSearch,
  component: lazyPage(() => import("../keys/keys-page"), "KeysPage"),
});

/** Each page is a chunk of its own, preloaded when the user points at a link to it. */
export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    jobs,
    job,
    workers,
    worker,
    addWorker,
    artifacts,
    compare,
    artifact,
    pipelines,
    newPipeline,
    pipeline,
    deployments,
    deployment,
    submit,
    billing,
    keys,
  ]),
  basepath: "/ui",
  parseSearch,
  stringifySearch,
  // Without `strict`, pages would also get unvalidated parameters.
  search: { strict: true },
  defaultPreload: "intent",
  defaultErrorComponent: PageFailed,
  scrollRestoration: true,
  getScrollRestorationKey: ({ pathname }) => pathname,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
