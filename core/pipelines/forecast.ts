import type { JobType } from "../jobs/job-types";
import type { StepStatus } from "./step";

interface Known {
  name: string;
  job_type: JobType;
  needs: string[];
  status: StepStatus;
  /** For how long it has run, in seconds. */
  elapsed_s: number;
}

/**
 * How long the steps that are left will take, along the longest way through them, in seconds; a step takes
 * what its type has taken lately. Null: of some type nothing is known. Waiting for workers and for people
 * is not in it.
 *
 * @param steps each after what it needs.
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
