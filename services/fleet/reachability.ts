/** After this many time-outs without any request, the workers are gone and not the network. */
const LONGEST = 10;

/**
 * Tells a server that is cut off from the network from workers that are silent. A cut-off server sees all of its
 * workers fall silent at once, which proves nothing about them; nor does a deadline that passes meanwhile. Any
 * request proves that the network works, and so does a heartbeat that another process has recorded.
 *
 * All times are monotonic, in ms.
 */
export class Reachability {
  /** The latest request or heartbeat. */
  private lastMs: number | undefined;
  /** Since when there was no gap between them. */
  private sinceMs = 0;
  /** Since when no worker that was heard could have been taken for silent. */
  private reachableSinceMs = 0;
  private readonly gapMs: number;
  private readonly longestMs: number;

  /** @param timeoutMs the heartbeat time-out. Half of it without any request is a gap. */
  constructor(private readonly timeoutMs: number) {
    this.gapMs = timeoutMs / 2;
    this.longestMs = timeoutMs * LONGEST;
  }

  /** Records a request or a heartbeat. After a gap, all workers have the length of a gap to come back. */
  record(atMs: number): void {
    const quietMs = this.lastMs === undefined ? Number.POSITIVE_INFINITY : atMs - this.lastMs;
    if (quietMs > this.gapMs) this.sinceMs = atMs;
    if (quietMs > this.timeoutMs) this.reachableSinceMs = atMs;
    this.lastMs = Math.max(atMs, this.lastMs ?? atMs);
  }

  /** Whether a worker that is silent since `silentSinceMs` is dead, because requests came in well after that. */
  provesSilence(silentSinceMs: number, nowMs: number): boolean {
    if (this.lastMs === undefined) return false;
    if (nowMs - this.lastMs >= this.longestMs) return true;
    return this.lastMs - silentSinceMs >= this.gapMs && nowMs - this.sinceMs >= this.gapMs;
  }

  /**
   * Whether a worker could have delivered a result during the last `forMs`, and now. Only a whole time-out is a gap
   * here: the one worker of a fleet may send its heartbeats as slowly as that, and its deadlines must pass.
   */
  wasReachable(forMs: number, nowMs: number): boolean {
    if (this.lastMs === undefined) return false;
    const quietMs = nowMs - this.lastMs;
    if (quietMs >= this.longestMs) return true;
    return quietMs <= this.gapMs && nowMs - this.reachableSinceMs >= forMs;
  }
}
