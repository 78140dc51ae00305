import type { JobWorkflowInput } from "../jobs/workflow";

/** The job type of deployments. Defined here, so that workflow code imports no declarations. */
export const DEPLOYMENT_TYPE = "deploy";

export const DEPLOYMENT_WORKFLOW = "deploymentWorkflow";

export interface DeploymentWorkflowInput {
  deploymentId: string;
}

export const DEPLOYMENT_STATUSES = ["active", "stopping", "stopped"] as const;
export type DeploymentStatus = (typeof DEPLOYMENT_STATUSES)[number];

export const PLACEMENT_STATES = ["starting", "serving", "stopping", "ended"] as const;
export type PlacementState = (typeof PLACEMENT_STATES)[number];

export const PLACEMENT_OUTCOMES = [
  "worker_lost",
  "missing",
  "unhealthy",
  "stopped",
  "failed",
] as const;
export type PlacementOutcome = (typeof PLACEMENT_OUTCOMES)[number];

/** Maximum servers of one deployment. */
export const MAX_REPLICAS = 16;

/** What the deployment's workflow needs to start the workflow of a placement's job. */
export interface PlacementJob extends JobWorkflowInput {
  placement: number;
  userId: string;
}

/** What the workflow of a deployment must do next. */
export interface DeploymentAction {
  /** The deployment has stopped; nothing is left to do. */
  isOver: boolean;
  /** The job of the placement that is starting. The workflow must run this job to its end. */
  placing?: PlacementJob;
  /** Check again after this time, even without a wake signal. */
  againInMs?: number;
}

export type DeploymentEnd = { status: "stopped" };
