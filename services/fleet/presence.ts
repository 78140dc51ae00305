/**
 * Since when this process has looked without a gap. A deadline that passed while no process was there to take a
 * result proves nothing.
 */
export class Presence {
  private lastMs: number | undefined;
  private sinceMs = 0;

  /** @param lateMs a look that comes later than this after the one before leaves a gap. */
  constructor(private readonly lateMs: number) {}

  /** Nobody could be heard: whatever was seen before this proves nothing. */
  interrupt(): void {
    this.sinceMs = Number.POSITIVE_INFINITY;
  }

  /** @param nowMs monotonic, and also counting while the machine sleeps. */
  look(nowMs: number): void {
    const gapMs = this.lastMs === undefined ? undefined : nowMs - this.lastMs;
    this.lastMs = nowMs;
    if (gapMs === undefined || gapMs > this.lateMs || this.sinceMs === Number.POSITIVE_INFINITY) {
      this.sinceMs = nowMs;
    }
  }

  /** For how long there was no gap, up to the last look, in ms. */
  get forMs(): number {
    return this.lastMs === undefined ? 0 : Math.max(0, this.lastMs - this.sinceMs);
  }
}
