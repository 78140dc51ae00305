import type { Pipeline } from "@forge/sdk";
import { SWEEP } from "../jobs/declared-types";

export interface GivenGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/** The name by which the API addresses the one gate for all evaluations of a sweep. */
const SWEPT: string = SWEEP.judged;

/**
 * The gates that a resume may replace. A sweep also has one gate for all its candidates: the
 * condition `where` of the step that chooses the best one.
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
