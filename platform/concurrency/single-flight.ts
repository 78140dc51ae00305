/** Concurrent calls with the same key run once and share the result. A later call runs again. */
export class SingleFlight<Result> {
  private readonly inFlight = new Map<string, Promise<Result>>();

  do(key: string, work: () => Promise<Result>): Promise<Result> {
    const running = this.inFlight.get(key);
    if (running) return running;
    const started = work().finally(() => this.inFlight.delete(key));
    this.inFlight.set(key, started);
    return started;
  }
}
