/** One look at the world, by two clocks. */
export interface Look {
  /** Monotonic, and also counting while the machine sleeps, in ms. */
  runningMs: number;
  /** The database's time of day, in ms. */
  databaseMs: number;
}

/** Less than this is the time that looking takes, or a clock that is being slewed. */
const LEAST_STEP_MS = 5_000;

/**
 * Since when this process has looked without a gap, and by how much the database's clock was set meanwhile. A
 * deadline that passed while nobody was there to take a result proves nothing, nor does one that a clock set
 * forward has passed.
 */
export class Presence {
  private last: Look | undefined;
  private sinceMs = 0;

  /** @param lateMs a look that comes later than this after the one before leaves a gap. */
  constructor(private readonly lateMs: number) {}

  /** Nobody could be heard: whatever was seen before this proves nothing. */
  interrupt(): void {
    this.sinceMs = Number.POSITIVE_INFINITY;
  }

  /** Takes a look; by how many ms the database's clock was set forward since the one before, or 0. */
  look(now: Look): number {
    const before = this.last;
    this.last = now;
    const gapMs = before === undefined ? undefined : now.runningMs - before.runningMs;
    if (gapMs === undefined || gapMs > this.lateMs || this.sinceMs === Number.POSITIVE_INFINITY) {
      this.sinceMs = now.runningMs;
    }
    if (before === undefined || gapMs === undefined) return 0;
    const steppedMs = now.databaseMs - before.databaseMs - gapMs;
    return steppedMs > LEAST_STEP_MS ? steppedMs : 0;
  }

  /** The database's time at the last look. */
  get databaseMs(): number | undefined {
    return this.last?.databaseMs;
  }

  /** For how long there was no gap, up to the last look, in ms. */
  get forMs(): number {
    return this.last === undefined ? 0 : Math.max(0, this.last.runningMs - this.sinceMs);
  }
}
