import { answer, rejectAll, type Waiting } from "./batch";

/**
 * Batches calls. One batch runs at a time: a call runs at once if no batch is running; otherwise it
 * waits for the next batch. It never joins a batch that has begun, so its result is never older
 * than the call. If a batch fails, the calls that wait for the next batch fail too.
 */
export class Coalesced<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private isBusy = false;

  /**
   * @param work returns the results of a batch, in the order of its items.
   * @param maxSize items of one batch.
   */
  constructor(
    private readonly work: (items: Item[]) => Promise<Result[]>,
    private readonly maxSize: number,
  ) {}

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (!this.isBusy) void this.run();
    });
  }

  private async run(): Promise<void> {
    this.isBusy = true;
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, this.maxSize);
      try {
        await answer(batch, this.work);
      } catch (error) {
        // Reject the waiting calls too: their batch would probably fail in the same way, perhaps
        // after another time-out.
        rejectAll([...batch, ...this.waiting], error);
        this.waiting = [];
      }
    }
    this.isBusy = false;
  }
}

/** Batches the calls of each group, such as a tenant, on their own: no group waits for another's batch. */
export class CoalescedByGroup<Item, Result> {
  /** Kept for good, because there are only as many groups as tenants. */
  private readonly groups = new Map<string, Coalesced<Item, Result>>();

  /**
   * @param work returns the results of a batch, in the order of its items.
   * @param maxSize items of one batch.
   */
  constructor(
    private readonly work: (group: string, items: Item[]) => Promise<Result[]>,
    private readonly maxSize: number,
  ) {}

  add(group: string, item: Item): Promise<Result> {
    const batches =
      this.groups.get(group) ??
      new Coalesced((items: Item[]) => this.work(group, items), this.maxSize);
    this.groups.set(group, batches);
    return batches.add(item);
  }
}
