import { evaluateCondition, explain, type GateFacts } from "../../core/pipelines/gate";
import type { StepResult } from "./pipeline-steps";
import type { StepEnding } from "./step-changes";

/** The values that conditions can name. */
export const factsOf = ({ result, metrics }: StepResult): GateFacts => ({
  result: result ?? {},
  scores: result?.scores,
  quality: result?.quality,
  metrics,
});

/** How a step ends whose job has completed: a gate that does not pass fails the step. */
export function judgeGate(gate: string | null, work: StepResult | undefined): StepEnding {
  if (gate === null || !work) return { status: "completed" };
  const verdict = evaluateCondition(gate, factsOf(work));
  const stored = { ...verdict, condition: gate };
  if (verdict.passed) return { status: "completed", verdict: stored };
  const error = `the gate did not pass: ${explain(gate, verdict)}`;
  return { status: "failed", error, errorCode: "gate_failed", verdict: stored };
}
