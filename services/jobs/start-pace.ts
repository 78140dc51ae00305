/**
 * The maximum number of workflow starts per second for the jobs that this process accepts. The
 * limit does not apply to a job whose first attempt has ended: its workflow starts at once. A start
 * costs about 25 ms of CPU time in Forge and 25 ms in Temporal: far more than a submission.
 */
const PER_SECOND = 5;
/**
 * This many workflows may start at once after a period with fewer than PER_SECOND submissions per
 * second.
 */
const BURST = 40;
/**
 * The maximum delay of a workflow start, in ms. Without this limit, the delay would keep growing
 * while jobs are submitted faster than PER_SECOND, and a long job would appear in Temporal very
 * late. If a burst has more jobs than PER_SECOND allows in this time, the last workflows of the
 * burst start faster than PER_SECOND.
 */
const MAX_DELAY_MS = 600_000;

/**
 * Spreads the starts of workflows over time. This delays no job: a workflow has nothing to do until
 * its job's first attempt ends, and then starts at once. Without the pace, the starts for a burst
 * of submissions would take most of the CPU during the burst, and slow down all tenants.
 */
export class StartPace {
  /**
   * The time from which the next start is allowed. If it is in the past, up to BURST workflows may
   * start at once.
   */
  private nextMs = Number.NEGATIVE_INFINITY;

  /** @param afterS the shortest delay. */
  constructor(
    private readonly afterS: number,
    private readonly nowMs: () => number,
  ) {}

  /**
   * Returns the delay, in seconds, of the workflow start for a job that is inserted now. If the
   * job's first attempt ends earlier, the workflow starts then.
   */
  nextDelayS(): number {
    const nowMs = this.nowMs();
    const freeMs = Math.max(this.nextMs, nowMs - (BURST * 1000) / PER_SECOND);
    const takenMs = Math.min(freeMs, nowMs + MAX_DELAY_MS);
    this.nextMs = takenMs + 1000 / PER_SECOND;
    return Math.max(this.afterS, (takenMs - nowMs) / 1000);
  }
}
