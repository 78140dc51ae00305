/** After this many heartbeat time-outs without any request, silent workers are marked dead all the same. */
const LONGEST = 10;

/**
 * Distinguishes silent workers from a server that has lost the network. For such a server all workers fall silent at
 * once, so it must neither mark workers dead nor enforce deadlines. A request proves that the network works, and so does
 * a heartbeat recorded by another process. All times are monotonic, in ms.
 */
export class Reachability {
  /** Time of the latest request or heartbeat. */
  private lastMs: number | undefined;
  /** Time of the first request after the last gap of more than `gapMs`. */
  private sinceMs = 0;
  /** Time of the first request after the last gap of more than a whole time-out. */
  private reachableSinceMs = 0;
  private readonly gapMs: number;
  private readonly longestMs: number;

  /** @param timeoutMs the heartbeat time-out. Half of it without a request is a gap. */
  constructor(private readonly timeoutMs: number) {
    this.gapMs = timeoutMs / 2;
    this.longestMs = timeoutMs * LONGEST;
  }

  /**
   * Records a request or a heartbeat. After a gap, workers have `gapMs` to reconnect before silence proves anything.
   */
  record(atMs: number): void {
    const quietMs = this.lastMs === undefined ? Number.POSITIVE_INFINITY : atMs - this.lastMs;
    if (quietMs > this.gapMs) this.sinceMs = atMs;
    if (quietMs > this.timeoutMs) this.reachableSinceMs = atMs;
    this.lastMs = Math.max(atMs, this.lastMs ?? atMs);
  }

  /**
   * Whether a worker that has been silent since `silentSinceMs` counts as dead: other requests arrived well after that,
   * or no request at all has arrived for LONGEST time-outs.
   */
  provesSilence(silentSinceMs: number, nowMs: number): boolean {
    if (this.lastMs === undefined) return false;
    if (nowMs - this.lastMs >= this.longestMs) return true;
    return this.lastMs - silentSinceMs >= this.gapMs && nowMs - this.sinceMs >= this.gapMs;
  }

  /**
   * Whether workers could deliver results during the last `forMs` and still can. `provesSilence` treats half a time-out
   * without a request as a gap; this method treats only a whole one so. The only worker of a fleet may send as few as
   * one heartbeat per time-out, and its deadlines must be enforced, too. Also true if no request has arrived for
   * `longestMs`.
   */
  wasReachable(forMs: number, nowMs: number): boolean {
    if (this.lastMs === undefined) return false;
    const quietMs = nowMs - this.lastMs;
    if (quietMs >= this.longestMs) return true;
    return quietMs <= this.gapMs && nowMs - this.reachableSinceMs >= forMs;
  }
}
