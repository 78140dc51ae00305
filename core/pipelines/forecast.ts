import type { JobType } from "../jobs/job-types";
import type { StepStatus } from "./step";

interface Known {
  name: string;
  job_type: JobType;
  needs: string[];
  status: StepStatus;
  /** How long it has run, in seconds. */
  elapsed_s: number;
}

/**
 * Estimated time until all steps are done, in seconds: the longest path through the remaining
 * steps. It does not include waiting for workers or for approvals.
 *
 * @param steps in topological order.
 * @param durationOf recent duration of a job type.
 * @returns null if the duration of a remaining step's type is unknown.
 */
export function remainingSeconds(
  steps: Known[],
  durationOf: (type: JobType) => number | undefined,
): number | null {
  const endsIn = new Map<string, number>();
  for (const step of steps) {
    const begins = Math.max(0, ...step.needs.map((name) => endsIn.get(name) ?? 0));
    if (isDone(step.status)) {
      endsIn.set(step.name, 0);
      continue;
    }
    const takes = durationOf(step.job_type);
    if (takes === undefined) return null;
    endsIn.set(step.name, begins + Math.max(0, takes - step.elapsed_s));
  }
  return Math.max(0, ...endsIn.values());
}

const isDone = (status: StepStatus): boolean =>
  status !== "pending" && status !== "waiting_approval" && status !== "running";
