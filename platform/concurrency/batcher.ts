import { answer, rejectAll, type Waiting } from "./batch";

/**
 * Gathers calls that come within a short while and does them as one. Whatever goes wrong with the one
 * goes wrong with each.
 */
export class Batcher<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param work answers a batch, in its order.
   * @param windowMs how long the first call of a batch waits for others.
   * @param maxSize a batch of so many goes at once.
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
    answer(batch, this.work).catch((error: unknown) => rejectAll(batch, error));
  }
}
