import type { JobType } from "../jobs/job-types";
import type { PipelineStep, StepStatus } from "./step";

export const PIPELINE_WORKFLOW = "pipelineWorkflow";
/** Workflow update that approves or rejects a waiting step, for example from Temporal's CLI. */
export const APPROVE_UPDATE = "approve";

/** Ids only. Payloads and results stay in Postgres. */
export interface PipelineWorkflowInput {
  pipelineId: string;
  requestId: string;
}

/** Input of the activities of one run of a pipeline. */
export interface RunInput extends PipelineWorkflowInput {
  /** Absent in old histories, and before the workflow has read its plan. */
  run?: number | undefined;
}

/** The part of a step that the workflow needs. */
export interface PlannedStep
  extends Pick<PipelineStep, "name" | "job_type" | "needs" | "optional" | "needs_approval"> {
  /** The steps from which this step chooses the best. They may have failed. */
  choosesFrom: string[];
  status: StepStatus;
}

export interface PipelinePlan {
  userId: string;
  /** Number of the pipeline's run. Writes that name an earlier run are ignored. */
  run: number;
  /** In topological order. */
  steps: PlannedStep[];
  orders: PipelineOrders;
}

/** Input of the activities of one step. */
export interface StepInput extends RunInput {
  step: string;
}

/**
 * A pipeline's cancellation and approval decisions, as read from Postgres. `cancelled` is also true
 * if the run has already ended.
 */
export interface PipelineOrders {
  /** The run that was current when these orders were read. Absent in old histories. */
  run?: number;
  cancelled: boolean;
  /** Approval decisions by step; false: rejected. */
  decisions: Record<string, boolean>;
}

/** Input of the approve update. */
export interface ApproveRequest {
  /** Optional if exactly one step waits for approval. */
  step?: string;
  approved?: boolean;
  by?: string;
  note?: string;
}

/** Result of beginning a step. */
export type BegunStep =
  | { how: "job"; jobId: string; jobType: JobType; maxAttempts: number }
  /**
   * The step is running, but has no job to wait for: it reuses an artifact, or its job has ended.
   */
  | { how: "reused" }
  /** The step has ended, or can't begin. */
  | { how: "ended"; end: StepEnd };

/** `superseded`: the pipeline was resumed meanwhile and is in a later run. */
export type StepEnd = "completed" | "failed" | "skipped" | "cancelled" | "superseded";

export type PipelineEnd =
  | { status: "completed" | "cancelled" }
  | { status: "failed"; code: string }
  /** The pipeline was over already, or is not in the database. */
  | { status: "none" }
  /**
   * The pipeline was resumed meanwhile and is in a later run, or the database was restored to a
   * time before the run's end. The workflow must read the plan again (`openPipeline`).
   */
  | { status: "superseded" };

export const hasEnded = (status: StepStatus): status is StepStatus & StepEnd =>
  status !== "pending" && status !== "waiting_approval" && status !== "running";

/** True if all needed steps have completed. Steps that this step chooses from may have failed. */
export const mayBegin = (
  step: Pick<PlannedStep, "needs" | "choosesFrom">,
  endOf: (name: string) => StepEnd,
): boolean =>
  step.needs.every((name) => endOf(name) === "completed" || step.choosesFrom.includes(name));
