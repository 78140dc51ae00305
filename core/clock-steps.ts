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

/** Less than this between two looks doesn't add up: they are no more precise, or the clock is being slewed. */
const SLEWED_MS = 100;

const stepOf = (ms: number): number => (Math.abs(ms) > LEAST_STEP_MS ? Math.round(ms) : 0);

const driftBetween = (before: ClockLook, now: ClockLook): number =>
  now.databaseMs - before.databaseMs - (now.runningMs - before.runningMs);

/** By how many ms the clock was set between two looks of one process; negative: back. 0 where it was not. */
export const stepBetween = (before: ClockLook, now: ClockLook): number =>
  stepOf(driftBetween(before, now));

/** The database's time without all steps that were recorded, in ms: it goes on evenly. */
export const steadyMs = ({ databaseMs, recordedMs }: ClockLook): number => databaseMs - recordedMs;

/**
 * By how many ms the clock was set back, at least, since any process looked at it last (steadyMs), while none ran;
 * negative, or 0. A step forward looks like time that has passed.
 */
export const stepBackSince = (lastMs: number, now: ClockLook): number =>
  Math.min(0, stepOf(steadyMs(now) - lastMs));

/** Whether the clock was set between two looks, or another process recorded that it was. */
export const isStepBetween = (before: ClockLook, now: ClockLook): boolean =>
  now.recordedMs !== before.recordedMs || stepBetween(before, now) !== 0;

/**
 * The look that the next one is to be compared with. Too small a step to be recorded stays in it, so that several
 * add up until they are.
 */
export const accountedLook = (before: ClockLook, now: ClockLook): ClockLook =>
  isStepBetween(before, now) || Math.abs(driftBetween(before, now)) < SLEWED_MS ? now : before;

/**
 * The part of that which no process has recorded. A process that saw no step accepts what others recorded: two
 * processes that disagree, because one was suspended unnoticed, must not correct each other without end.
 */
export function unrecordedStep(before: ClockLook, now: ClockLook): number {
  if (stepBetween(before, now) === 0) return 0;
  return stepOf(driftBetween(before, now) - (now.recordedMs - before.recordedMs));
}
