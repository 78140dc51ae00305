/** One reading of the database's clock, in ms. */
export interface ClockReading {
  /** Monotonic time of this machine. It also counts while the machine is suspended. */
  runningMs: number;
  /** The database's time of day. */
  databaseMs: number;
  /**
   * Sum of all clock steps recorded so far. A step is positive if the database's clock was set
   * forward, and negative if it was set back.
   */
  recordedMs: number;
}

/**
 * Only a drift above this is a clock step. Drift is the time that the database's clock gained on
 * `runningMs` between two readings; negative if it lost time. A smaller drift can come from the
 * duration of a reading, or from slewing (a gradual correction of the clock).
 */
const MIN_STEP_MS = 5_000;

/**
 * A drift below this comes from imprecise readings, or from slewing. It is ignored: it does not
 * even count towards a later step (`nextBaseline`).
 */
const MIN_DRIFT_MS = 100;

const stepOf = (ms: number): number => (Math.abs(ms) > MIN_STEP_MS ? Math.round(ms) : 0);

const driftBetween = (before: ClockReading, now: ClockReading): number =>
  now.databaseMs - before.databaseMs - (now.runningMs - before.runningMs);

/**
 * The clock step between two readings of one process, in ms. Negative: the clock was set back. 0:
 * the drift is too small to be a step.
 */
export const stepBetween = (before: ClockReading, now: ClockReading): number =>
  stepOf(driftBetween(before, now));

/** The database's time without the recorded clock steps, in ms. */
export const steadyMs = ({ databaseMs, recordedMs }: ClockReading): number =>
  databaseMs - recordedMs;

/**
 * Detects whether the clock was set back while no process ran. If it was, returns a negative number
 * of ms, otherwise 0. The clock was set back by at least this amount. The exact amount is unknown,
 * because the length of the downtime is unknown. A step forward can't be detected: it looks like
 * time that has passed.
 * @param lastMs `steadyMs` of the last reading of any process.
 */
export const stepBackSince = (lastMs: number, now: ClockReading): number =>
  Math.min(0, stepOf(steadyMs(now) - lastMs));

/** True if the clock was set between two readings, or if another process recorded a step. */
export const isStepBetween = (before: ClockReading, now: ClockReading): boolean =>
  now.recordedMs !== before.recordedMs || stepBetween(before, now) !== 0;

/**
 * Returns the reading to compare the next one with. After a step or a negligible drift: `now`.
 * After any other drift: `before`, so that several small drifts add up to a step.
 */
export const nextBaseline = (before: ClockReading, now: ClockReading): ClockReading =>
  isStepBetween(before, now) || Math.abs(driftBetween(before, now)) < MIN_DRIFT_MS ? now : before;

/**
 * Returns the part of a clock step that no process has recorded yet, in ms. If this process saw no
 * step, returns 0, even if another process recorded one. Without this rule, two processes that
 * measure the same step differently (for example because one of them was suspended) would undo each
 * other's records forever.
 */
export function unrecordedStep(before: ClockReading, now: ClockReading): number {
  if (stepBetween(before, now) === 0) return 0;
  return stepOf(driftBetween(before, now) - (now.recordedMs - before.recordedMs));
}
