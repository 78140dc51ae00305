/**
 * Runs a limited number of work items at a time and serves waiting groups, such as tenants,
 * round-robin. A group with many items delays another group by at most one item per slot.
 */
export class FairQueue {
  /**
   * For each group, the callbacks that start its waiting items. Groups are served in the Map's
   * order.
   */
  private readonly waiting = new Map<string, (() => void)[]>();
  private readonly running = new Map<string, number>();
  private total = 0;

  /**
   * @param atOnce how many items run at the same time.
   * @param perGroup how many of them may be of one group. If this is less than `atOnce`, slow items
   *   of one group never use all slots.
   */
  constructor(
    private readonly atOnce = 1,
    private readonly perGroup = atOnce,
  ) {}

  /** How many items of a group wait, without the running ones. */
  waitingOf(group: string): number {
    return this.waiting.get(group)?.length ?? 0;
  }

  /**
   * @param signal if the signal is aborted before `work` has begun, the returned promise rejects
   *   with the signal's reason. Later, the signal has no effect.
   */
  async run<Result>(
    group: string,
    work: () => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted();
    if (this.hasRoomFor(group)) this.count(group, 1);
    else await this.waitForSlot(group, signal);
    try {
      return await work();
    } finally {
      this.count(group, -1);
      this.startNext();
    }
  }

  /** Whether an item of this group would begin at once. */
  hasRoomFor(group: string): boolean {
    return this.total < this.atOnce && (this.running.get(group) ?? 0) < this.perGroup;
  }

  private waitForSlot(group: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        const others = (this.waiting.get(group) ?? []).filter((one) => one !== start);
        this.keep(group, others);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      const items = this.waiting.get(group);
      if (items) items.push(start);
      else this.waiting.set(group, [start]);
    });
  }

  private startNext(): void {
    for (const [group, items] of this.waiting) {
      if (!this.hasRoomFor(group)) continue;
      const start = items.shift();
      // Re-insert the group at the end: a Map iterates in insertion order.
      this.waiting.delete(group);
      this.keep(group, items);
      // Take the slot before the item runs, so that no new call can take it.
      this.count(group, 1);
      start?.();
      return;
    }
  }

  private count(group: string, by: 1 | -1): void {
    this.total += by;
    const next = (this.running.get(group) ?? 0) + by;
    if (next === 0) this.running.delete(group);
    else this.running.set(group, next);
  }

  private keep(group: string, items: (() => void)[]): void {
    if (items.length === 0) this.waiting.delete(group);
    else this.waiting.set(group, items);
  }
}
