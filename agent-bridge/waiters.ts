/** Polls parked in this process, one per worker: a second poll of a worker ends its first. */
export class Waiters {
  private readonly parked = new Map<string, () => void>();
  private closed = false;

  get workerIds(): string[] {
    return [...this.parked.keys()];
  }

  /**
   * Parks a poll before it reads what it waits for, so that no wake-up falls in between.
   *
   * `woken` settles at a wake-up, after `waitMs`, when the client hangs up, or at close.
   */
  park(
    workerId: string,
    waitMs: number,
    hungUp: AbortSignal,
  ): { woken: Promise<void>; leave(): void } {
    this.parked.get(workerId)?.();
    let leave = (): void => undefined;
    const woken = new Promise<void>((resolve) => {
      const timer = setTimeout(() => leave(), this.closed ? 0 : waitMs);
      leave = () => {
        clearTimeout(timer);
        hungUp.removeEventListener("abort", leave);
        if (this.parked.get(workerId) === leave) this.parked.delete(workerId);
        resolve();
      };
      hungUp.addEventListener("abort", leave);
      this.parked.set(workerId, leave);
      if (hungUp.aborted) leave();
    });
    return { woken, leave };
  }

  /** Ends the polls of these workers that are parked here; the ids of those that are not. */
  wake(workerIds: string[]): string[] {
    return workerIds.filter((workerId) => {
      const leave = this.parked.get(workerId);
      leave?.();
      return leave === undefined;
    });
  }

  /** Answers everybody: the server is going. */
  close(): void {
    this.closed = true;
    this.wake(this.workerIds);
  }
}
