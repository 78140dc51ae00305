import type { JobType } from "../jobs/job-types";
import type { StepStatus } from "./step";
import { hasEnded } from "./workflow";

interface Known {
  name: string;
  job_type: JobType;
  needs: string[];
  status: StepStatus;
  /** How long the step has run, in seconds. */
  elapsed_s: number;
}

/**
 * Seconds until all steps are done: the longest path through the remaining steps, without waiting
 * for workers or approvals. Null if the duration of a remaining step's type is unknown.
 * @param steps in topological order.
 * @param durationOf recent duration of a job type, in seconds.
 */
export function remainingSeconds(
  steps: Known[],
  durationOf: (type: JobType) => number | undefined,
): number | null {
  const endsIn = new Map<string, number>();
  for (const step of steps) {
    const begins = Math.max(0, ...step.needs.map((name) => endsIn.get(name) ?? 0));
    if (hasEnded(step.status)) {
      endsIn.set(step.name, 0);
      continue;
    }
    const takes = durationOf(step.job_type);
    if (takes === undefined) return null;
    endsIn.set(step.name, begins + Math.max(0, takes - step.elapsed_s));
  }
  return Math.max(0, ...endsIn.values());
}
