export interface Counter {
  id: string;
  /** Grows with every heartbeat or poll. */
  seq: number;
}

/** A counter that has not changed since `sinceMs`. */
export interface StaleCounter extends Counter {
  sinceMs: number;
}

/**
 * Finds workers whose counter of heartbeats or polls has not changed for the time-out, measured on
 * a monotonic clock. Stored times would not work: after an outage of Postgres or of all servers,
 * all stored times are old.
 */
export class UnchangedCounters {
  private seen = new Map<string, { seq: number; sinceMs: number }>();
  private lastMs: number | undefined;

  /**
   * @param timeoutMs how long a counter must be unchanged.
   * @param lateMs if more time than this passes between two observations, all time-outs start
   *   again.
   */
  constructor(
    private readonly timeoutMs: number,
    private readonly lateMs: number,
  ) {}

  /** Starts all time-outs again. */
  reset(): void {
    this.seen = new Map();
    this.lastMs = undefined;
  }

  /** Records the current counters. Returns those that have been unchanged for the time-out. */
  observe(all: Counter[], nowMs: number): StaleCounter[] {
    if (this.lastMs !== undefined && nowMs - this.lastMs > this.lateMs) this.reset();
    this.lastMs = nowMs;
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
