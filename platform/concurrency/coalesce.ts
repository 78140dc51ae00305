import { type BatchWork, rejectAll, runBatch, type Waiting } from "./batch";

interface Limits<Item> {
  /** Maximum number of items in a batch. */
  maxSize: number;
  /** Maximum size of a batch in bytes, measured with `bytesOf`. A larger item runs alone. */
  maxBytes?: number;
  bytesOf?: (item: Item) => number;
  /**
   * Called after a batch has failed. Returns whether the calls that wait for the next batch fail
   * with the same error. Default: true, because the next batch would probably fail in the same way,
   * perhaps after another time-out.
   */
  failsWaiting?: () => boolean;
}

/**
 * Batches calls. One batch runs at a time: a call runs at once if no batch is running; otherwise it
 * waits for the next batch. A call never joins a batch that has begun, so its result is never older
 * than the call.
 */
export class Coalesced<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private isBusy = false;

  constructor(
    private readonly work: BatchWork<Item, Result>,
    private readonly limits: Limits<Item>,
    private readonly onIdle = (): void => undefined,
  ) {}

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (!this.isBusy) void this.run();
    });
  }

  private async run(): Promise<void> {
    const { failsWaiting = () => true } = this.limits;
    this.isBusy = true;
    while (this.waiting.length > 0) {
      const batch = this.takeBatch();
      try {
        await runBatch(batch, this.work);
      } catch (error) {
        if (failsWaiting()) batch.push(...this.waiting.splice(0));
        rejectAll(batch, error);
      }
    }
    this.isBusy = false;
    this.onIdle();
  }

  private takeBatch(): Waiting<Item, Result>[] {
    const { maxSize, maxBytes = Number.POSITIVE_INFINITY, bytesOf = () => 0 } = this.limits;
    let bytes = 0;
    const tooMany = this.waiting.findIndex(({ item }, n) => {
      bytes += bytesOf(item);
      return n > 0 && (n >= maxSize || bytes > maxBytes);
    });
    return this.waiting.splice(0, tooMany === -1 ? this.waiting.length : tooMany);
  }
}

/**
 * Batches the calls of each group, such as a tenant, separately. A group never waits for the batch
 * of another group.
 */
export class CoalescedByGroup<Item, Result> {
  /** The groups with a running batch. */
  private readonly groups = new Map<string, Coalesced<Item, Result>>();

  constructor(
    private readonly work: (group: string, items: Item[]) => ReturnType<BatchWork<Item, Result>>,
    private readonly limits: Limits<Item>,
  ) {}

  add(group: string, item: Item): Promise<Result> {
    const batches =
      this.groups.get(group) ??
      new Coalesced<Item, Result>(
        (items) => this.work(group, items),
        this.limits,
        () => this.groups.delete(group),
      );
    this.groups.set(group, batches);
    return batches.add(item);
  }
}
