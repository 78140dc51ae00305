import type { Pipeline } from "@forge/sdk";
import { SWEEP } from "../jobs/declared-types";

export interface ReplaceableGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/**
 * The name that a sweep's gate has in the API's field `step`. It is the job type of the evaluations
 * and not the name of a step, because the gate applies to all of them: `evaluate-1`, `evaluate-2`
 * and so on.
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
