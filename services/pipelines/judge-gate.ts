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

/** Returns how a step ends after its job has completed. The step fails if its gate doesn't pass. */
export function judgeGate(gate: string | null, work: StepResult | undefined): StepEnding {
  if (gate === null || !work) return { status: "completed" };
  const verdict = evaluateCondition(gate, factsOf(work));
  const stored = { ...verdict, condition: gate };
  if (verdict.passed) return { status: "completed", verdict: stored };
  const error = `the gate did not pass: ${explain(gate, verdict)}`;
  return { status: "failed", error, errorCode: "gate_failed", verdict: stored };
}
