/** One look at the database's clock. */
export interface ClockLook {
  /** Monotonic, and also counting while the machine sleeps, in ms. */
  runningMs: number;
  /** The database's time of day, in ms. */
  databaseMs: number;
  /** The sum of all steps that were recorded by then, in ms; those that set the clock back are negative. */
  recordedMs: number;
}

/** Less than this is the time that looking takes, or a clock that is being slewed. */
const LEAST_STEP_MS = 5_000;

const stepOf = (ms: number): number => (Math.abs(ms) > LEAST_STEP_MS ? Math.round(ms) : 0);

/** By how many ms the clock was set between two looks of one process; negative: back. 0 where it was not. */
export const stepBetween = (before: ClockLook, now: ClockLook): number =>
  stepOf(now.databaseMs - before.databaseMs - (now.runningMs - before.runningMs));

/**
 * The part of that which no process has recorded. A process that saw no step accepts what others recorded: two
 * processes that disagree, because one was suspended unnoticed, must not correct each other without end.
 */
export function unrecordedStep(before: ClockLook, now: ClockLook): number {
  const step = stepBetween(before, now);
  return step === 0 ? 0 : stepOf(step - (now.recordedMs - before.recordedMs));
}
