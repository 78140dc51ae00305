import { CoalescedByGroup } from "./coalesce";

/**
 * Shares equal reads. While a read of a key runs, further calls with the key wait, and all of them
 * share the next read. A call never joins a read that has begun, so its result is never older than
 * the call.
 */
export class SharedReads<T> {
  private readonly reads: CoalescedByGroup<() => Promise<T>, T>;

  /**
   * @param failsWaiting called after a read has failed. Returns whether the calls that wait for the
   *   next read fail with the same error.
   */
  constructor(failsWaiting: () => boolean) {
    const readOnce = async (_key: string, reads: (() => Promise<T>)[]): Promise<T[]> => {
      const result = await reads[0]?.();
      return reads.map(() => result as T);
    };
    const limits = { maxSize: Number.POSITIVE_INFINITY, failsWaiting };
    this.reads = new CoalescedByGroup(readOnce, limits);
  }

  get(key: string, read: () => Promise<T>): Promise<T> {
    return this.reads.add(key, read);
  }
}
