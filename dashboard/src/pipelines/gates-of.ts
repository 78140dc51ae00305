import type { Pipeline } from "@forge/sdk";
import { SWEEP } from "../jobs/declared-types";

export interface GivenGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/**
 * A sweep has one gate for all its evaluations. To the API, this is the gate of a step with this
 * name, although the evaluation steps have numbers in their names, e.g. `evaluate-1`.
 */
const SWEPT: string = SWEEP.judged;

/**
 * Returns the gates that a resume may replace: the gate of each step and, in a sweep, the gate for
 * all evaluations. The pipeline's definition stores the latter as the condition `where` of the step
 * that chooses the best result.
 */
export function gatesOf({ template, steps, definition }: Pipeline): GivenGate[] {
  const gates = steps.flatMap(({ name, gate }) =>
    gate ? [{ step: name, condition: gate.condition, hasFailed: gate.passed === false }] : [],
  );
  if (template === null || steps.some(({ name }) => name === SWEPT)) return gates;
  const choose = definition?.steps.find((step) => step.choose)?.choose;
  if (!choose) return gates;
  return [...gates, { step: SWEPT, condition: choose.where ?? "", hasFailed: false }];
}
