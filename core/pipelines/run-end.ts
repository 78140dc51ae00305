import { dueOf } from "./due-work";
import type { PipelineStatus } from "./step";
import type { PlannedStep } from "./workflow";

interface Step extends Pick<PlannedStep, "name" | "needs" | "choosesFrom" | "optional" | "status"> {
  error: string | null;
  error_code: string | null;
}

export interface RunEnd {
  status: PipelineStatus;
  error: string | null;
  errorCode: string | null;
}

/**
 * How a pipeline's run ended; undefined if it has not ended.
 * @param steps as they are in the database, in topological order.
 */
export function judgeRun(steps: Step[], isCancelled: boolean): RunEnd | undefined {
  if (!dueOf(steps, isCancelled).isOver) return undefined;
  const needed = steps.filter((step) => !step.optional);
  const noError = { error: null, errorCode: null };
  if (needed.every(({ status }) => status === "completed")) {
    return { status: "completed", ...noError };
  }
  if (isCancelled) return { status: "cancelled", ...noError };
  const failed = [...needed, ...steps].find(({ status }) => status === "failed");
  return {
    status: "failed",
    error: failed ? `step "${failed.name}": ${failed.error}` : "a step was skipped",
    errorCode: failed?.error_code ?? "step_failed",
  };
}
