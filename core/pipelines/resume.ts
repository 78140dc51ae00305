import { downstreamOf } from "./graph";
import type { PipelineStep, StepStatus } from "./step";

interface Ended extends Pick<PipelineStep, "name" | "needs" | "optional" | "choose"> {
  status: StepStatus;
  error_code: string | null;
}

/**
 * The names of the steps that a resume repeats:
 * - with `from`: that step and all steps that depend on it, even completed ones;
 * - always: every step that has not completed, except optional steps that are no longer needed.
 *
 * An optional step is no longer needed if it has dependent steps, and none of them still needs it.
 * A dependent step does not need it in these cases:
 * - The dependent step is no longer needed itself.
 * - The dependent step chooses one of several steps, and at least one of these has completed. With
 *   the error code `nothing_to_choose`, it has rejected all completed ones and needs the others.
 * @param steps in topological order.
 */
export function stepsToRepeat(steps: Ended[], from?: string): string[] {
  const repeated = from === undefined ? new Set<string>() : downstreamOf(from, steps);
  const excluded = new Set<string>();
  for (const step of [...steps].reverse()) {
    if (step.status === "completed") continue;
    const dependents = steps.filter(({ needs }) => needs.includes(step.name));
    const isUnused = (by: Ended): boolean =>
      excluded.has(by.name) ||
      ((by.choose?.from.includes(step.name) ?? false) && hasCompletedCandidate(by, steps));
    if (step.optional && dependents.length > 0 && dependents.every(isUnused)) {
      excluded.add(step.name);
    } else repeated.add(step.name);
  }
  return steps.map(({ name }) => name).filter((name) => repeated.has(name));
}

const hasCompletedCandidate = ({ choose, error_code }: Ended, steps: Ended[]): boolean =>
  error_code !== "nothing_to_choose" &&
  steps.some(({ name, status }) => status === "completed" && choose?.from.includes(name));
