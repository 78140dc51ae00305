import { setTimeout as sleep } from "node:timers/promises";

const MAX_GROUPS = 10_000;

interface Rate {
  perSecond: number;
  /** So many at once, after a pause, before anything waits. */
  burst: number;
  /** Nothing waits longer, however many came before it. */
  maxWaitMs: number;
  /** So many of a group may wait at once. */
  maxWaiting: number;
}

/**
 * Holds back whoever comes too often, group by group, by letting it wait. A client that asks again only when it
 * was answered, as every honest one does, goes on at the rate then. Many at once go on at no more than
 * `maxWaiting` in each `maxWaitMs`.
 */
export class Pace {
  /** When the last of a group may go on as if there had been no burst, in the order of their last use. */
  private readonly due = new Map<string, number>();
  private readonly waiting = new Map<string, number>();
  private readonly everyMs: number;

  constructor(
    private readonly rate: Rate,
    private readonly nowMs: () => number,
  ) {
    this.everyMs = 1_000 / rate.perSecond;
  }

  /** Counts one more of a group. Resolves when it may go on; to false at once if too many wait already. */
  async wait(group: string): Promise<boolean> {
    const ms = this.next(group);
    if (ms === 0) return true;
    const waiting = this.waiting.get(group) ?? 0;
    if (waiting >= this.rate.maxWaiting) return false;
    this.waiting.set(group, waiting + 1);
    await sleep(ms);
    const left = (this.waiting.get(group) ?? 1) - 1;
    if (left > 0) this.waiting.set(group, left);
    else this.waiting.delete(group);
    return true;
  }

  /** How long one more of a group has to wait, in ms. */
  next(group: string): number {
    const { burst, maxWaitMs } = this.rate;
    const now = this.nowMs();
    const free = now + burst * this.everyMs;
    const due = Math.min(Math.max(this.due.get(group) ?? 0, now) + this.everyMs, free + maxWaitMs);
    this.due.delete(group);
    this.due.set(group, due);
    this.forgetOldest();
    return Math.max(0, due - free);
  }

  private forgetOldest(): void {
    for (const group of this.due.keys()) {
      if (this.due.size <= MAX_GROUPS) return;
      this.due.delete(group);
    }
  }
}
