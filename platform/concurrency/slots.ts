/** Runs at most `count` tasks at once. Other tasks wait and start in order. */
export class Slots {
  private readonly running = new Set<Promise<void>>();
  private readonly waiting: (() => Promise<unknown>)[] = [];

  /** @param onError is called with the error of a failed task. Other tasks continue. */
  constructor(
    private readonly count: number,
    private readonly onError: (error: unknown) => void,
  ) {}

  get free(): number {
    return this.count - this.running.size;
  }

  get waitingCount(): number {
    return this.waiting.length;
  }

  /** Runs `task` now, or as soon as a slot is free. */
  run(task: () => Promise<unknown>): void {
    if (this.free <= 0) {
      this.waiting.push(task);
      return;
    }
    const done: Promise<void> = task()
      .then(() => undefined, this.onError)
      .finally(() => {
        this.running.delete(done);
        const next = this.waiting.shift();
        if (next) this.run(next);
      });
    this.running.add(done);
  }

  /** Waits until one of the running tasks ends. Never resolves if no task is running. */
  async untilAnyEnds(): Promise<void> {
    await Promise.race(this.running);
  }

  /** Waits for the tasks that are running now, but not for tasks that start during the wait. */
  async untilRunningEnd(): Promise<void> {
    await Promise.all(this.running);
  }

  /** Waits until no task is running or waiting. */
  async untilIdle(): Promise<void> {
    while (this.running.size > 0) await this.untilRunningEnd();
  }
}
