import type { JobType } from "../jobs/job-types";
import type { PipelineStep, StepStatus } from "./step";

/** The names by which its workflow is known to whoever starts it, wakes it, or decides in it. */
export const PIPELINE_WORKFLOW = "pipelineWorkflow";
/** Somebody's word on a step that waits for it, e.g. from Temporal's command line. */
export const APPROVE_UPDATE = "approve";

/** Ids only: payloads, numbers and words stay in Postgres. */
export interface PipelineWorkflowInput {
  pipelineId: string;
  requestId: string;
}

/** A step as the workflow knows it. */
export interface PlannedStep
  extends Pick<PipelineStep, "name" | "job_type" | "needs" | "optional" | "needs_approval"> {
  /** Steps that it chooses from: of them some may have failed. */
  choosesFrom: string[];
  status: StepStatus;
}

export interface PipelinePlan {
  userId: string;
  /** Which of the pipeline's runs this is: what is said for an earlier one changes nothing. */
  run: number;
  /** Each after what it needs. */
  steps: PlannedStep[];
  orders: PipelineOrders;
}

/** A step, as an activity is told of it. */
export interface StepInput extends PipelineWorkflowInput {
  step: string;
  /** Of the plan. */
  run?: number;
}

/** What people have asked for since. */
export interface PipelineOrders {
  /** Of which run; older histories do not say. */
  run?: number;
  cancelled: boolean;
  /** By step, the word that it waited for. */
  decisions: Record<string, boolean>;
}

/** What an update brings. */
export interface ApproveRequest {
  /** May be left out where one step waits. */
  step?: string;
  approved?: boolean;
  by?: string;
  note?: string;
}

/** How a step was begun. */
export type BegunStep =
  | { how: "job"; jobId: string; jobType: JobType; maxAttempts: number }
  /** An earlier job's artifact is taken: there is only its gate left. */
  | { how: "reused" }
  /** It can't be begun, or not any more. */
  | { how: "ended"; end: StepEnd };

/** `superseded`: the pipeline was resumed since, and is in another run. */
export type StepEnd = "completed" | "failed" | "skipped" | "cancelled" | "superseded";

export type PipelineEnd =
  | { status: "completed" | "cancelled" }
  | { status: "failed"; code: string }
  /** It was over already, or is gone. */
  | { status: "none" }
  /** It was resumed since: there is another run to go through. */
  | { status: "superseded" };

export const hasEnded = (status: StepStatus): status is StepStatus & StepEnd =>
  status !== "pending" && status !== "waiting_approval" && status !== "running";

/**
 * Whether a step may be begun, now that all that it needs has ended: those that it chooses from may have
 * failed, any other may not.
 */
export const mayBegin = (
  step: Pick<PlannedStep, "needs" | "choosesFrom">,
  endOf: (name: string) => StepEnd,
): boolean =>
  step.needs.every((name) => endOf(name) === "completed" || step.choosesFrom.includes(name));
