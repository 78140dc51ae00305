import { rejectAll, runBatch, type Waiting } from "./batch";

/** Collects calls for a short time and runs them as one batch. If a batch fails, its calls fail. */
export class Batcher<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param work returns the results of a batch, in the order of its items.
   * @param windowMs how long the first call of a batch waits for others.
   * @param maxSize a batch that reaches this size runs immediately.
   */
  constructor(
    private readonly work: (items: Item[]) => Promise<Result[]>,
    private readonly windowMs: number,
    private readonly maxSize: number,
  ) {}

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, resolve, reject });
      if (this.waiting.length >= this.maxSize) this.flush();
      else this.timer ??= setTimeout(() => this.flush(), this.windowMs);
    });
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const batch = this.waiting;
    this.waiting = [];
    runBatch(batch, this.work).catch((error: unknown) => rejectAll(batch, error));
  }
}
