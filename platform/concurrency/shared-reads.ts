interface Read<T> {
  running: Promise<T>;
  /** The read that starts when `running` has ended. All later calls with the key share it. */
  next?: Promise<T>;
}

/**
 * Shares equal reads. While a read of a key runs, further calls with the key wait, and all of them
 * share the next read. A call never joins a read that has begun, so its result is never older than
 * the call.
 */
export class SharedReads<T> {
  private readonly reads = new Map<string, Read<T>>();

  /**
   * @param failsWaiting called after a read has failed. Returns whether the calls that wait for the
   *   next read fail with the same error.
   */
  constructor(private readonly failsWaiting: () => boolean) {}

  async get(key: string, read: () => Promise<T>): Promise<T> {
    const current = this.reads.get(key);
    if (!current) return await this.begin(key, read);
    current.next ??= this.readAfter(current.running, key, read);
    return await current.next;
  }

  private async readAfter(running: Promise<T>, key: string, read: () => Promise<T>): Promise<T> {
    try {
      await running;
    } catch (error) {
      if (this.failsWaiting()) {
        this.reads.delete(key);
        throw error;
      }
    }
    return await this.begin(key, read);
  }

  private begin(key: string, read: () => Promise<T>): Promise<T> {
    const running = read();
    const current: Read<T> = { running };
    this.reads.set(key, current);
    const end = (): void => {
      if (!current.next) this.reads.delete(key);
    };
    running.then(end, end);
    return running;
  }
}
