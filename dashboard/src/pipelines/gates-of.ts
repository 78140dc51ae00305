import type { Pipeline } from "@forge/sdk";

export interface GivenGate {
  step: string;
  condition: string;
  hasFailed: boolean;
}

/** The API calls a sweep's evaluations by this name together. */
const SWEPT = "evaluate";

/** The gates that a resume may replace; of a sweep, what its candidates must pass to be chosen. */
export function gatesOf({ template, steps, definition }: Pipeline): GivenGate[] {
  const gates = steps.flatMap(({ name, gate }) =>
    gate ? [{ step: name, condition: gate.condition, hasFailed: gate.passed === false }] : [],
  );
  if (template === null || steps.some(({ name }) => name === SWEPT)) return gates;
  const choose = definition?.steps.find((step) => step.choose)?.choose;
  if (!choose) return gates;
  return [...gates, { step: SWEPT, condition: choose.where ?? "", hasFailed: false }];
}
