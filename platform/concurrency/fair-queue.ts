/**
 * So many pieces of work at a time, and the groups that wait take turns: a group with a hundred pieces
 * holds up another's one by a piece that is under way, and no more.
 */
export class FairQueue {
  /** What starts each piece, by group, in the order in which the groups' turns come. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private readonly underWay = new Map<string, number>();
  private total = 0;

  /**
   * @param atOnce pieces of all groups that may be under way.
   * @param perGroup of one group: fewer, so that slow pieces of one don't take all places.
   */
  constructor(
    private readonly atOnce = 1,
    private readonly perGroup = atOnce,
  ) {}

  /** How many of a group's wait, without those under way. */
  waitingOf(group: string): number {
    return this.waiting.get(group)?.length ?? 0;
  }

  /** @param signal takes back what has not begun: it rejects with the signal's reason. */
  async take<Result>(
    group: string,
    work: () => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted();
    if (this.hasRoomFor(group)) this.count(group, 1);
    else await this.turnOf(group, signal);
    try {
      return await work();
    } finally {
      this.count(group, -1);
      this.startNext();
    }
  }

  /** Whether a piece of this group would begin at once. */
  hasRoomFor(group: string): boolean {
    return this.total < this.atOnce && (this.underWay.get(group) ?? 0) < this.perGroup;
  }

  private turnOf(group: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.keep(
          group,
          (this.waiting.get(group) ?? []).filter((one) => one !== start),
        );
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      const pieces = this.waiting.get(group);
      if (pieces) pieces.push(start);
      else this.waiting.set(group, [start]);
    });
  }

  private startNext(): void {
    for (const [group, pieces] of this.waiting) {
      if (!this.hasRoomFor(group)) continue;
      const start = pieces.shift();
      // To the end of the row: a Map goes by age of entry.
      this.waiting.delete(group);
      this.keep(group, pieces);
      // Before it runs: what comes meanwhile waits its turn.
      this.count(group, 1);
      start?.();
      return;
    }
  }

  private count(group: string, by: 1 | -1): void {
    this.total += by;
    const next = (this.underWay.get(group) ?? 0) + by;
    if (next === 0) this.underWay.delete(group);
    else this.underWay.set(group, next);
  }

  private keep(group: string, pieces: (() => void)[]): void {
    if (pieces.length === 0) this.waiting.delete(group);
    else this.waiting.set(group, pieces);
  }
}
