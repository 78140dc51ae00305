import { hasEnded, mayBegin, type PlannedStep, type StepEnd } from "./workflow";

type Step = Pick<PlannedStep, "name" | "needs" | "choosesFrom" | "optional" | "status">;

/**
 * How each step ended, by name. A step that can't begin any more counts as `skipped`, although the
 * step's row stays `pending` until `closeRun` ends the run.
 * @param steps in topological order.
 */
function endsOf(steps: Step[]): Map<string, StepEnd> {
  const ends = new Map<string, StepEnd>();
  for (const step of steps) {
    if (hasEnded(step.status)) ends.set(step.name, step.status);
    else if (step.status === "pending" && isDecided(step, ends) && !isAllowed(step, ends)) {
      ends.set(step.name, "skipped");
    }
  }
  return ends;
}

const isDecided = ({ needs }: Step, ends: Map<string, StepEnd>): boolean =>
  needs.every((name) => ends.has(name));

const isAllowed = (step: Step, ends: Map<string, StepEnd>): boolean =>
  isDecided(step, ends) && mayBegin(step, (name) => ends.get(name) ?? "skipped");

/**
 * True if the step may begin: all steps that it needs have completed. Exception: if the step
 * chooses the best result of several steps (a sweep), those steps may have failed.
 */
export function isReady(steps: Step[], name: string): boolean {
  const step = steps.find((each) => each.name === name);
  return step !== undefined && isAllowed(step, endsOf(steps));
}

/** What a pipeline's workflow should be doing now, according to the database. */
export interface DueWork {
  /** Names of the steps whose jobs the workflow waits for. */
  running: string[];
  /** The workflow should begin a step, ask for an approval, or end the run. */
  hasNextAction: boolean;
  /** No further step begins: the pipeline is cancelled, or a required step did not complete. */
  isStopping: boolean;
  /**
   * The run can end: no step is running. If `isStopping` is false, in addition no step waits for
   * an approval, and no step may begin.
   */
  isOver: boolean;
}

/**
 * What the workflow of a pipeline with these steps should be doing.
 * @param isCancelled the pipeline is cancelled, so no further step begins.
 */
export function dueOf(steps: Step[], isCancelled: boolean): DueWork {
  const ends = endsOf(steps);
  const isStopping =
    isCancelled ||
    steps.some(
      ({ name, optional }) => !optional && (ends.get(name) ?? "completed") !== "completed",
    );
  const running = steps.filter(({ status }) => status === "running").map(({ name }) => name);
  const waits = !isStopping && steps.some(({ status }) => status === "waiting_approval");
  const begins =
    !isStopping && steps.some((step) => step.status === "pending" && isAllowed(step, ends));
  const isOver = running.length === 0 && !waits && !begins;
  return { running, hasNextAction: begins || isOver, isStopping, isOver };
}
