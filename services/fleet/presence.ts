/**
 * Measures for how long the fleet monitor of this process has checked the workers without a gap.
 * The monitor enforces deadlines only after enough time without a gap, because workers first need
 * time to deliver the results that they could not deliver while no server ran.
 */
export class Presence {
  private lastMs: number | undefined;
  private sinceMs = 0;

  /** @param lateMs if more time than this passes between two checks, there is a gap. */
  constructor(private readonly lateMs: number) {}

  /**
   * Call after a failed check. The time without a gap starts again at the next successful check.
   */
  interrupt(): void {
    this.sinceMs = Number.POSITIVE_INFINITY;
  }

  /**
   * Records a check.
   *
   * @param nowMs a monotonic time that also counts while the machine sleeps.
   */
  record(nowMs: number): void {
    const gapMs = this.lastMs === undefined ? undefined : nowMs - this.lastMs;
    this.lastMs = nowMs;
    if (gapMs === undefined || gapMs > this.lateMs || this.sinceMs === Number.POSITIVE_INFINITY) {
      this.sinceMs = nowMs;
    }
  }

  /** The time without a gap, up to the last check, in ms. */
  get forMs(): number {
    return this.lastMs === undefined ? 0 : Math.max(0, this.lastMs - this.sinceMs);
  }
}
