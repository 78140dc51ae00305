import { setTimeout as sleep } from "node:timers/promises";
import { KeyedCounter } from "./keyed-counter";

const MAX_GROUPS = 10_000;

interface Rate {
  perSecond: number;
  /** How many calls pass without delay after a pause. */
  burst: number;
  /** Longest wait of one call. */
  maxWaitMs: number;
  /** Maximum number of calls of one group that wait at the same time. */
  maxWaiting: number;
}

/**
 * Limits the rate of calls per group by delaying them. A client that sends one call at a time is
 * slowed down to the rate. A client that sends many calls at once may exceed the rate, because no
 * call waits longer than `maxWaitMs`. At most `maxWaiting` calls of a group wait; `wait` refuses
 * further ones.
 */
export class Throttle {
  /**
   * For each group, the theoretical arrival time of the GCRA algorithm. Each call sets it to
   * `everyMs` after its old value, or after now if the old value is in the past. The call passes at
   * the new value minus `burst * everyMs`, or at once if that time is in the past. The map is
   * ordered by the groups' last calls, oldest first.
   */
  private readonly arrivalMs = new Map<string, number>();
  private readonly waiting = new KeyedCounter();
  private readonly everyMs: number;

  constructor(
    private readonly rate: Rate,
    private readonly nowMs: () => number,
  ) {
    this.everyMs = 1_000 / rate.perSecond;
  }

  /**
   * Counts a call. Resolves to true when the call may pass. Resolves to false immediately if too
   * many calls of its group are waiting.
   */
  async wait(group: string): Promise<boolean> {
    const ms = this.next(group);
    if (ms === 0) return true;
    if (this.waiting.of(group) >= this.rate.maxWaiting) return false;
    this.waiting.add(group);
    // Many calls may have the maximum wait. If they waited equally long, they would pass together,
    // and their clients would send the next calls together. So shorten each of these waits by a
    // random amount, at most half of the wait.
    const isLongest = ms > this.rate.maxWaitMs - this.everyMs / 2;
    await sleep(isLongest ? ms * (0.5 + Math.random() / 2) : ms);
    this.waiting.remove(group);
    return true;
  }

  /** Counts one call of a group and returns how long it has to wait, in ms. */
  next(group: string): number {
    const { burst, maxWaitMs } = this.rate;
    const now = this.nowMs();
    const free = now + burst * this.everyMs;
    const due = Math.min(
      Math.max(this.arrivalMs.get(group) ?? 0, now) + this.everyMs,
      free + maxWaitMs,
    );
    this.arrivalMs.delete(group);
    this.arrivalMs.set(group, due);
    this.forgetOldest();
    return Math.max(0, due - free);
  }

  private forgetOldest(): void {
    for (const group of this.arrivalMs.keys()) {
      if (this.arrivalMs.size <= MAX_GROUPS) return;
      this.arrivalMs.delete(group);
    }
  }
}
