/**
 * Those of one name go one after the other in this process. Who would wait for a row's lock waits here
 * first, where it holds no connection that others need.
 */
export class KeyedMutex {
  private readonly last = new Map<string, Promise<unknown>>();

  async runExclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.last.get(name) ?? Promise.resolve();
    const mine = before.then(work);
    // Whether it fails is for its caller to hear; the next one only waits for its end.
    const ended = mine.catch(() => undefined);
    this.last.set(name, ended);
    try {
      return await mine;
    } finally {
      if (this.last.get(name) === ended) this.last.delete(name);
    }
  }
}
