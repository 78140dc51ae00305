import { evaluateCondition, explain } from "../../core/pipelines/gate";
import type { StepResult, StepRow } from "../../services/pipelines/pipeline-steps";
import type { PipelineRow } from "../../services/pipelines/pipelines";
import type { StepEnding } from "../../services/pipelines/step-changes";
import { notYet } from "../context";
import { factsOf } from "./choose-candidate";

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
      return judged(step, work);
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

function judged({ gate }: StepRow, work: StepResult | undefined): StepEnding {
  if (gate === null || !work) return { status: "completed" };
  const verdict = evaluateCondition(gate, factsOf(work));
  const stored = { ...verdict, condition: gate };
  if (verdict.passed) return { status: "completed", verdict: stored };
  const error = `the gate did not pass: ${explain(gate, verdict)}`;
  return { status: "failed", error, errorCode: "gate_failed", verdict: stored };
}
