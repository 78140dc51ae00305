/** One reading of the database's clock, in ms. */
export interface ClockReading {
  /** Monotonic time of this machine. It also counts while the machine is suspended. */
  runningMs: number;
  /** The database's time of day. */
  databaseMs: number;
  /** Sum of all clock steps recorded so far. Steps backwards are negative. */
  recordedMs: number;
}

/** Smaller differences are not steps: the reading took time, or the clock is being slewed. */
const MIN_STEP_MS = 5_000;

/** Smaller drift is ignored: readings are that imprecise, or the clock is being slewed. */
const MIN_DRIFT_MS = 100;

const stepOf = (ms: number): number => (Math.abs(ms) > MIN_STEP_MS ? Math.round(ms) : 0);

const driftBetween = (before: ClockReading, now: ClockReading): number =>
  now.databaseMs - before.databaseMs - (now.runningMs - before.runningMs);

/** The clock step between two readings of one process, in ms. Negative: set back. 0: not set. */
export const stepBetween = (before: ClockReading, now: ClockReading): number =>
  stepOf(driftBetween(before, now));

/** The database's time without the recorded steps, in ms. It advances evenly. */
export const steadyMs = ({ databaseMs, recordedMs }: ClockReading): number =>
  databaseMs - recordedMs;

/**
 * By how much, at least, the clock was set back while no process ran, in ms: 0 or negative. A step
 * forward can't be detected: it looks like time that has passed.
 * @param lastMs `steadyMs` of the last reading of any process.
 */
export const stepBackSince = (lastMs: number, now: ClockReading): number =>
  Math.min(0, stepOf(steadyMs(now) - lastMs));

/** True if the clock was set between two readings, or if another process recorded a step. */
export const isStepBetween = (before: ClockReading, now: ClockReading): boolean =>
  now.recordedMs !== before.recordedMs || stepBetween(before, now) !== 0;

/**
 * The reading to compare the next one with. If the drift since `before` is neither negligible nor a
 * step, this is `before`, so that several small drifts add up to a step.
 */
export const nextBaseline = (before: ClockReading, now: ClockReading): ClockReading =>
  isStepBetween(before, now) || Math.abs(driftBetween(before, now)) < MIN_DRIFT_MS ? now : before;

/**
 * The unrecorded part of a step, in ms. A process that saw no step accepts what others recorded:
 * otherwise two processes that disagree, for example because one was suspended, would correct each
 * other forever.
 */
export function unrecordedStep(before: ClockReading, now: ClockReading): number {
  if (stepBetween(before, now) === 0) return 0;
  return stepOf(driftBetween(before, now) - (now.recordedMs - before.recordedMs));
}
