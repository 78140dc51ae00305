/**
 * Runs calls with the same key one at a time within this process. Calls that need the same row lock
 * wait here first, without holding a database connection.
 */
export class KeyedMutex {
  private readonly last = new Map<string, Promise<unknown>>();

  async runExclusive<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.last.get(key) ?? Promise.resolve();
    const mine = before.then(work);
    // The next call only waits for the end of this call. The error of a failed call goes only to
    // the caller of the failed call.
    const ended = mine.catch(() => undefined);
    this.last.set(key, ended);
    try {
      return await mine;
    } finally {
      if (this.last.get(key) === ended) this.last.delete(key);
    }
  }
}
