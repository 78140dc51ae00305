import { evaluateCondition, explain, measure } from "../../core/pipelines/gate";
import { factsOf } from "../../services/pipelines/judge-gate";
import type { StepResult, StepView } from "../../services/pipelines/pipeline-steps";
import { StepFault } from "./step-fault";

/**
 * The best candidate of a step's `choose`; null if the step has no `choose`.
 * @throws StepFault if no candidate qualifies.
 */
export function chooseStep({ choose }: StepView, needed: StepResult[]): StepView["chosen"] {
  if (!choose) return null;
  const { from, by, order, where } = choose;
  const rejected: string[] = [];
  let best: StepView["chosen"] = null;
  for (const name of from) {
    const candidate = needed.find((each) => each.name === name);
    if (candidate?.status !== "completed") {
      rejected.push(`${name} is ${candidate?.status ?? "missing"}`);
      continue;
    }
    const facts = factsOf(candidate);
    const verdict = where === undefined ? undefined : evaluateCondition(where, facts);
    const value = measure(by, facts);
    if (where !== undefined && verdict && !verdict.passed) {
      rejected.push(`${name}: ${explain(where, verdict)}`);
    } else if (value === undefined) rejected.push(`${name} has no number ${by}`);
    else if (!best || (order === "highest" ? value > best.value : value < best.value)) {
      best = { step: name, by, value };
    }
  }
  if (best) return best;
  throw new StepFault("nothing_to_choose", `no step can be chosen: ${rejected.join("; ")}`);
}
