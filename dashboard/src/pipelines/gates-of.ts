import type { Pipeline } from "@forge/sdk";
import { SWEEP } from "../jobs/declared-types";

export interface ReplaceableGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/**
 * The step name that the API uses for a sweep's gate: the job type of the evaluations. A sweep has
 * one gate for all its evaluations. The evaluation steps have numbered names, e.g. `evaluate-1`.
 */
const SWEEP_GATE_STEP: string = SWEEP.judged;

/**
 * Returns the gates that a resume may replace: the gate of each step and, in a sweep, the gate for
 * all evaluations. The pipeline's definition stores a sweep's gate as `choose.where` of the step
 * that chooses the best result.
 */
export function gatesOf({ template, steps, definition }: Pipeline): ReplaceableGate[] {
  const gates = steps.flatMap(({ name, gate }) =>
    gate ? [{ step: name, condition: gate.condition, hasFailed: gate.passed === false }] : [],
  );
  if (template === null || steps.some(({ name }) => name === SWEEP_GATE_STEP)) return gates;
  const choose = definition?.steps.find((step) => step.choose)?.choose;
  if (!choose) return gates;
  return [...gates, { step: SWEEP_GATE_STEP, condition: choose.where ?? "", hasFailed: false }];
}
