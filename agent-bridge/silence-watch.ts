interface Heard {
  worker_id: string;
  heartbeat_seq: number;
}

/**
 * Decides who is silent by watching heartbeat numbers stand still on a monotonic clock. A stored time
 * would lie: after an outage of Postgres or of every server all of them are old.
 */
export class SilenceWatch {
  private seen = new Map<string, { seq: number; sinceMs: number }>();
  private lastLookMs: number | undefined;

  /**
   * @param timeoutMs silence that means death.
   * @param lateMs a look that comes later than this after the one before proves nothing.
   */
  constructor(
    private readonly timeoutMs: number,
    private readonly lateMs: number,
  ) {}

  /** Forgets what was seen: every worker has its whole time-out again. */
  startOver(): void {
    this.seen = new Map();
    this.lastLookMs = undefined;
  }

  /** Takes one look at all workers; those whose number has stood still for the time-out. */
  observe(workers: Heard[], nowMs: number): Heard[] {
    if (this.lastLookMs !== undefined && nowMs - this.lastLookMs > this.lateMs) this.startOver();
    this.lastLookMs = nowMs;
    const before = this.seen;
    this.seen = new Map();
    return workers.filter(({ worker_id, heartbeat_seq }) => {
      const known = before.get(worker_id);
      const sinceMs = known?.seq === heartbeat_seq ? known.sinceMs : nowMs;
      this.seen.set(worker_id, { seq: heartbeat_seq, sinceMs });
      return nowMs - sinceMs >= this.timeoutMs;
    });
  }
}
