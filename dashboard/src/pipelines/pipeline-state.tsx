import type { Pipeline, PipelineStep } from "@forge/sdk";
import { statusMark, statusName } from "../jobs/job-state";
import { type Mark, type StateStyle, Status, styleOf } from "../ui/status-mark";

const STATUSES: Record<string, StateStyle> = {
  pending: { mark: "pending", name: "Pending" },
  running: { mark: "running", name: "Running" },
  waiting_approval: { mark: "waiting", name: "Needs approval" },
  completed: { mark: "completed", name: "Completed" },
  failed: { mark: "failed", name: "Failed" },
  skipped: { mark: "skipped", name: "Skipped" },
  cancelled: { mark: "cancelled", name: "Cancelled" },
};

export const pipelineStatusName = (status: string): string => styleOf(STATUSES, status).name;
export const pipelineStatusMark = (status: string): Mark => styleOf(STATUSES, status).mark;

export const isOver = ({ status }: Pick<Pipeline, "status">): boolean =>
  status !== "running" && status !== "waiting_approval";

export const isCancelling = (pipeline: Pipeline): boolean =>
  pipeline.cancel_requested_at !== null && !isOver(pipeline);

export const pipelineStateName = (pipeline: Pipeline): string =>
  isCancelling(pipeline) ? "Cancelling" : pipelineStatusName(pipeline.status);

/** The pipeline's name. If the pipeline has no name, a title made from the template's name. */
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
