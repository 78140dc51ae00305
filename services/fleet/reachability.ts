/**
 * After this many heartbeat time-outs without a request or a heartbeat, the server no longer
 * assumes that only its own network is down: silent workers count as dead, and deadlines are
 * enforced.
 */
const MAX_SILENT_TIMEOUTS = 10;

/**
 * Decides whether silent workers are dead, or whether this server has lost the network. A server
 * without network receives no requests. Until MAX_SILENT_TIMEOUTS have passed, it must not mark
 * workers dead or enforce deadlines. In this class, "request" also means a heartbeat that another
 * process has recorded, because it proves as well that the network works. All times are monotonic,
 * in ms.
 */
export class Reachability {
  /** Time of the latest request. */
  private lastMs: number | undefined;
  /** Time of the first request after the last gap of more than `gapMs`. */
  private sinceMs = 0;
  /** Time of the first request after the last gap of more than a whole time-out. */
  private reachableSinceMs = 0;
  private readonly gapMs: number;
  private readonly longestMs: number;

  /**
   * @param timeoutMs the heartbeat time-out. If no request arrives for more than half of this time,
   *   there is a gap.
   */
  constructor(private readonly timeoutMs: number) {
    this.gapMs = timeoutMs / 2;
    this.longestMs = timeoutMs * MAX_SILENT_TIMEOUTS;
  }

  /**
   * Records a request. After a gap, workers have `gapMs` to reconnect before `isSilent` can return
   * true.
   */
  record(atMs: number): void {
    const quietMs = this.lastMs === undefined ? Number.POSITIVE_INFINITY : atMs - this.lastMs;
    if (quietMs > this.gapMs) this.sinceMs = atMs;
    if (quietMs > this.timeoutMs) this.reachableSinceMs = atMs;
    this.lastMs = Math.max(atMs, this.lastMs ?? atMs);
  }

  /**
   * Whether a worker that has been silent since `silentSinceMs` counts as dead. True in two cases:
   * - The latest request arrived at least `gapMs` after `silentSinceMs`, so the network worked
   *   while the worker was silent. Also, the last gap between requests ended at least `gapMs` ago,
   *   so the worker has had time to reconnect.
   * - The latest request is at least MAX_SILENT_TIMEOUTS time-outs old.
   */
  isSilent(silentSinceMs: number, nowMs: number): boolean {
    if (this.lastMs === undefined) return false;
    if (nowMs - this.lastMs >= this.longestMs) return true;
    return this.lastMs - silentSinceMs >= this.gapMs && nowMs - this.sinceMs >= this.gapMs;
  }

  /**
   * Whether workers could deliver results during the last `forMs` and still can: the last request
   * is recent, and no pause between requests was longer than a whole time-out. Shorter pauses are
   * allowed, because the only worker of a fleet may send just one heartbeat per time-out, and its
   * deadlines must be enforced.
   *
   * Also true if no request has arrived for MAX_SILENT_TIMEOUTS time-outs: the server then no
   * longer assumes that only its own network is down.
   */
  wasReachable(forMs: number, nowMs: number): boolean {
    if (this.lastMs === undefined) return false;
    const quietMs = nowMs - this.lastMs;
    if (quietMs >= this.longestMs) return true;
    return quietMs <= this.gapMs && nowMs - this.reachableSinceMs >= forMs;
  }
}
