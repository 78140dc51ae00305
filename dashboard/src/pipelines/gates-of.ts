import type { Pipeline } from "@forge/sdk";
import { SWEEP } from "../jobs/declared-types";

export interface GivenGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/** In the API, the gate of this step applies to all evaluations of a sweep. */
const SWEPT: string = SWEEP.judged;

/** The gates that a resume may replace. A sweep has one: the condition of its candidates. */
export function gatesOf({ template, steps, definition }: Pipeline): GivenGate[] {
  const gates = steps.flatMap(({ name, gate }) =>
    gate ? [{ step: name, condition: gate.condition, hasFailed: gate.passed === false }] : [],
  );
  if (template === null || steps.some(({ name }) => name === SWEPT)) return gates;
  const choose = definition?.steps.find((step) => step.choose)?.choose;
  if (!choose) return gates;
  return [...gates, { step: SWEPT, condition: choose.where ?? "", hasFailed: false }];
}
