import type { Pipeline } from "@forge/sdk";
import { SWEEP } from "../jobs/declared-types";

export interface GivenGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/**
 * The step name that the API uses in a sweep for the one gate on all evaluations. The evaluation
 * steps themselves have numbers in their names, e.g. `evaluate-1`.
 */
const SWEPT: string = SWEEP.judged;

/**
 * The gates that a resume may replace: the gate of each step and, in a sweep, one gate for all
 * evaluations. That gate is the condition `where` of the step that chooses the best result.
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
