import type { Pipeline, PipelineStep } from "@forge/sdk";
import { statusMark, statusName } from "../jobs/job-state";
import { type Mark, Status } from "../ui/status-mark";

const NAMES: Record<string, string> = {
  pending: "Pending",
  running: "Running",
  waiting_approval: "Needs approval",
  completed: "Completed",
  failed: "Failed",
  skipped: "Skipped",
  cancelled: "Cancelled",
};

const MARKS: Record<string, Mark> = {
  pending: "pending",
  running: "running",
  waiting_approval: "waiting",
  completed: "completed",
  failed: "failed",
  skipped: "skipped",
  cancelled: "cancelled",
};

export const pipelineStatusName = (status: string): string => NAMES[status] ?? status;
export const pipelineStatusMark = (status: string): Mark => MARKS[status] ?? "pending";

export const isOver = ({ status }: Pick<Pipeline, "status">): boolean =>
  status !== "running" && status !== "waiting_approval";

export const isCancelling = (pipeline: Pipeline): boolean =>
  pipeline.cancel_requested_at !== null && !isOver(pipeline);

export const pipelineStateName = (pipeline: Pipeline): string =>
  isCancelling(pipeline) ? "Cancelling" : pipelineStatusName(pipeline.status);

/** The pipeline's name, or its template's. */
export const pipelineTitle = ({ name, template }: Pick<Pipeline, "name" | "template">): string =>
  name ?? (template ? `${template} pipeline` : "Pipeline");

export const PipelineStatus = ({ pipeline }: { pipeline: Pipeline }) => (
  <Status mark={pipelineStatusMark(pipeline.status)} text={pipelineStateName(pipeline)} />
);

/** A running step shows its job's state: the job may still wait for a worker. */
export function stepMark({ status, job_status }: PipelineStep): Mark {
  return status === "running" ? statusMark(job_status ?? "pending") : pipelineStatusMark(status);
}

export function stepStateName({ status, job_status, reused }: PipelineStep): string {
  if (reused && status === "completed") return "Reused";
  if (status !== "running") return pipelineStatusName(status);
  if (job_status === null || job_status === "pending") return "Waits for a worker";
  return job_status === "completed" || job_status === "failed"
    ? "Finalising"
    : statusName(job_status);
}

export const StepStatus = ({ step }: { step: PipelineStep }) => (
  <Status mark={stepMark(step)} text={stepStateName(step)} />
);
