import { setTimeout as sleep } from "node:timers/promises";

const MAX_GROUPS = 10_000;

interface Rate {
  perSecond: number;
  /** So many at once, after a pause, before anything waits. */
  burst: number;
  /** Nothing waits longer, however many came before it. */
  maxWaitMs: number;
}

/**
 * Holds back whoever comes too often, group by group, by letting him wait. Who asks again only when he was
 * answered, as every honest client does, costs no more than the rate then.
 */
export class Pace {
  /** When the last of a group may go on as if there had been no burst, in the order of their last use. */
  private readonly due = new Map<string, number>();
  private readonly everyMs: number;

  constructor(
    private readonly rate: Rate,
    private readonly nowMs: () => number,
  ) {
    this.everyMs = 1_000 / rate.perSecond;
  }

  /** Counts one more of a group; resolves when it may go on. */
  async wait(group: string): Promise<void> {
    const ms = this.next(group);
    if (ms > 0) await sleep(ms);
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
