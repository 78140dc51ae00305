/**
 * The most workflows per second that start for jobs which this process accepts, unless an attempt ends earlier. A start
 * costs about 25 ms of CPU time here and as much in Temporal, twenty times as much as a submission.
 */
const PER_SECOND = 5;
/** This many may start at once after a while with fewer submissions. */
const BURST = 40;
/**
 * The longest delay, in ms: so a long job appears in Temporal even if many short ones are submitted all the time. After
 * a burst of more jobs than start in this time, the rest start faster.
 */
const MOST_MS = 600_000;

/**
 * Spreads the starts of workflows over time. A workflow has nothing to do until its job's first attempt ends, and then
 * starts at once. Without this pace, the starts of a burst of submissions would take most of the CPU while the burst
 * still lasts, and slow down all tenants.
 */
export class StartPace {
  /** When the next start is free. In the past by up to the time of BURST starts. */
  private nextMs = Number.NEGATIVE_INFINITY;

  /** @param afterS the least delay. */
  constructor(
    private readonly afterS: number,
    private readonly nowMs: () => number,
  ) {}

  /** Seconds until the workflow of a job that is inserted now starts, if its first attempt does not end earlier. */
  nextDelayS(): number {
    const nowMs = this.nowMs();
    const freeMs = Math.max(this.nextMs, nowMs - (BURST * 1000) / PER_SECOND);
    const takenMs = Math.min(freeMs, nowMs + MOST_MS);
    this.nextMs = takenMs + 1000 / PER_SECOND;
    return Math.max(this.afterS, (takenMs - nowMs) / 1000);
  }
}
