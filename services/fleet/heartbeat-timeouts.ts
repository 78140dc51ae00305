export interface Counted {
  id: string;
  /** Grows with every sign of life. */
  seq: number;
}

/** One whose number stands still. */
export interface Still extends Counted {
  sinceMs: number;
}

/**
 * Decides who is silent by watching numbers stand still on a monotonic clock. A stored time would lie:
 * after an outage of Postgres or of every server all of them are old.
 */
export class HeartbeatTimeouts {
  private seen = new Map<string, { seq: number; sinceMs: number }>();
  private lastLookMs: number | undefined;

  /**
   * @param timeoutMs stillness that means silence.
   * @param lateMs a look that comes later than this after the one before proves nothing.
   */
  constructor(
    private readonly timeoutMs: number,
    private readonly lateMs: number,
  ) {}

  /** Forgets what was seen: everybody has the whole time-out again. */
  startOver(): void {
    this.seen = new Map();
    this.lastLookMs = undefined;
  }

  /** Takes one look at everybody; those whose number has stood still for the time-out. */
  observe(all: Counted[], nowMs: number): Still[] {
    if (this.lastLookMs !== undefined && nowMs - this.lastLookMs > this.lateMs) this.startOver();
    this.lastLookMs = nowMs;
    const before = this.seen;
    this.seen = new Map();
    return all.flatMap(({ id, seq }) => {
      const known = before.get(id);
      const sinceMs = known?.seq === seq ? known.sinceMs : nowMs;
      this.seen.set(id, { seq, sinceMs });
      return nowMs - sinceMs >= this.timeoutMs ? [{ id, seq, sinceMs }] : [];
    });
  }
}
