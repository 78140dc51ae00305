import type { JobWorkflowInput } from "../jobs/workflow";

/** The name the deployment workflow is registered under. */
export const DEPLOYMENT_WORKFLOW = "deploymentWorkflow";

export interface DeploymentWorkflowInput {
  deploymentId: string;
}

export const DEPLOYMENT_STATUSES = ["active", "stopping", "stopped"] as const;
export type DeploymentStatus = (typeof DEPLOYMENT_STATUSES)[number];

export const PLACEMENT_STATES = ["starting", "serving", "stopping", "ended"] as const;
export type PlacementState = (typeof PLACEMENT_STATES)[number];

/** Why a placement has ended. */
export const PLACEMENT_OUTCOMES = [
  "worker_lost",
  "missing",
  "unhealthy",
  "stopped",
  "failed",
] as const;
export type PlacementOutcome = (typeof PLACEMENT_OUTCOMES)[number];

/** Most servers of one deployment. */
export const MAX_REPLICAS = 16;

/** The job that makes a placement, as a workflow starts it. */
export interface PlacementJob extends JobWorkflowInput {
  placement: number;
  userId: string;
}

/** What a look at a deployment has found: what its workflow has to do next. */
export interface DeploymentLook {
  /** There is nothing to do any more. */
  isOver: boolean;
  /** The placement that is being made: its job must run. */
  placing?: PlacementJob;
  /** Look again after so long, also if nobody says so. */
  againInMs?: number;
}

export type DeploymentEnd = { status: "stopped" };
