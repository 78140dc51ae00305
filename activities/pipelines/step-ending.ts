import { judgeGate } from "../../services/pipelines/judge-gate";
import type { StepResult, StepRow } from "../../services/pipelines/pipeline-steps";
import type { PipelineRow } from "../../services/pipelines/pipelines";
import type { StepEnding } from "../../services/pipelines/step-changes";
import { notYet } from "../context";

/**
 * Decides from a step's gate and its job's status how the step ended.
 * @throws notYet while the job has not ended.
 */
export function endingOf(
  pipeline: PipelineRow,
  step: StepRow,
  work: StepResult | undefined,
): StepEnding {
  if (step.job_status === null) {
    if (pipeline.cancel_requested_at !== null) return { status: "cancelled" };
    throw notYet(`job ${step.job_id} of step "${step.name}" is not in the database yet`);
  }
  switch (step.job_status) {
    case "completed":
      return judgeGate(step.gate, work);
    case "failed":
      if (pipeline.cancel_requested_at !== null) return { status: "cancelled" };
      return {
        status: "failed",
        error: step.job_error ?? "its job failed",
        errorCode: "step_failed",
      };
    default:
      throw notYet(`job ${step.job_id} has not ended`);
  }
}
