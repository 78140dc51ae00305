import { hasEnded, mayBegin, type PlannedStep, type StepEnd } from "./workflow";

type Step = Pick<PlannedStep, "name" | "needs" | "choosesFrom" | "optional" | "status">;

/**
 * The ends of steps by what is written of them, each after what it needs. A step that is left out stays
 * `pending` in the database until its run is closed: its end is `skipped` all the same.
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

/** Whether all that a step needs has ended so that it may be begun. */
export function isReady(steps: Step[], name: string): boolean {
  const step = steps.find((each) => each.name === name);
  return step !== undefined && isAllowed(step, endsOf(steps));
}

/** What the workflow of a pipeline must be doing. */
export interface DueWork {
  /** Names of steps whose jobs it waits for. */
  running: string[];
  /** It is to begin a step, or to ask for its approval, or to end the run. */
  isNext: boolean;
}

/** @param isCancelled no step is begun any more. */
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
  return { running, isNext: begins || (running.length === 0 && !waits) };
}
