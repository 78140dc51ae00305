import { answer, rejectAll, type Waiting } from "./batch";

/**
 * Does calls together that come while others are under way: one batch at a time, the first at once. A call
 * is never answered by a batch that began before it came, but it fails with one that it waited for.
 */
export class Coalesced<Item, Result> {
  private waiting: Waiting<Item, Result>[] = [];
  private isBusy = false;

  /**
   * @param work answers a batch, in its order.
   * @param maxSize of one batch.
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
        // Those that waited for it, too: one after the other they might wait as long again each.
        rejectAll([...batch, ...this.waiting], error);
        this.waiting = [];
      }
    }
    this.isBusy = false;
  }
}
