import { downstreamOf } from "./graph";
import type { PipelineStep, StepStatus } from "./step";

interface Ended extends Pick<PipelineStep, "name" | "needs" | "optional" | "choose"> {
  status: StepStatus;
  error_code: string | null;
}

interface EndedWithChoice extends Ended {
  chosen: { step: string } | null;
}

interface NewEnding {
  status: StepStatus;
  errorCode?: string | null | undefined;
}

/**
 * The names of the steps that a resume repeats:
 * - with `from`: that step and all steps that depend on it, even completed ones;
 * - always: every step that has not completed, except optional steps that are no longer needed.
 *
 * An optional step is no longer needed if it has dependent steps, and none of them still needs it.
 * A dependent step does not need it in these cases:
 * - The dependent step is no longer needed itself.
 * - The dependent step chooses one of several steps, and at least one of these has completed.
 *   Exception: if the dependent step has the error code `nothing_to_choose`, it has rejected all
 *   completed steps and needs the others.
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

/**
 * The steps that run again: those that `stepsToRepeat` returns (except steps that failed at a new
 * gate), and completed steps whose inputs change:
 * - They depend on a step that runs again.
 * - They depend on an optional step that has failed at a new gate. If a required step fails at a
 *   new gate, the pipeline fails at once. The results of the steps that depend on it are kept, in
 *   case it passes the gate of a later resume.
 * @param endings the endings of steps whose gates were evaluated again, by name.
 */
export function stepsToReset(
  steps: EndedWithChoice[],
  endings: Map<string, NewEnding>,
  from?: string,
): string[] {
  const now = steps.map((step) => {
    const ending = endings.get(step.name);
    return ending ? { ...step, status: ending.status, error_code: ending.errorCode ?? null } : step;
  });
  const again = stepsToRepeat(now, from).filter((name) => !endings.has(name));
  const failed = steps.filter(
    ({ name, status, optional }) =>
      optional && status === "completed" && endings.get(name)?.status === "failed",
  );
  const graph = steps.map(withoutRejected);
  const reset = new Set(again);
  for (const changed of [...again, ...failed.map(({ name }) => name)]) {
    for (const name of downstreamOf(changed, graph)) {
      const hasResult = steps.some((step) => step.name === name && step.status === "completed");
      if (name !== changed && (hasResult || endings.has(name))) reset.add(name);
    }
  }
  return [...reset];
}

/** A completed step that has chosen one of several steps depends only on the chosen one. */
const withoutRejected = ({ name, needs, status, choose, chosen }: EndedWithChoice) => ({
  name,
  needs:
    status === "completed" && choose !== null
      ? needs.filter((need) => !choose.from.includes(need) || need === chosen?.step)
      : needs,
});
