import { downstreamOf } from "./graph";
import type { PipelineStep, StepStatus } from "./step";

interface Ended extends Pick<PipelineStep, "name" | "needs" | "optional" | "choose"> {
  status: StepStatus;
  error_code: string | null;
}

/**
 * The steps that a resume does again. From a step: that one and all that depends on it. And in any case
 * those that have not completed, but for a choice's failed candidates while there are others to choose
 * from, and for what only these have come from.
 *
 * @param steps each after what it needs.
 */
export function stepsToRepeat(steps: Ended[], from?: string): string[] {
  const again = from === undefined ? new Set<string>() : downstreamOf(from, steps);
  const leftOut = new Set<string>();
  for (const step of [...steps].reverse()) {
    if (step.status === "completed") continue;
    const dependents = steps.filter(({ needs }) => needs.includes(step.name));
    const isGivenUp = (by: Ended): boolean =>
      leftOut.has(by.name) ||
      ((by.choose?.from.includes(step.name) ?? false) && hasOthers(by, steps));
    if (step.optional && dependents.length > 0 && dependents.every(isGivenUp)) {
      leftOut.add(step.name);
    } else again.add(step.name);
  }
  return steps.map(({ name }) => name).filter((name) => again.has(name));
}

const hasOthers = ({ choose, error_code }: Ended, steps: Ended[]): boolean =>
  error_code !== "nothing_to_choose" &&
  steps.some(({ name, status }) => status === "completed" && choose?.from.includes(name));
