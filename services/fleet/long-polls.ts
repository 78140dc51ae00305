export type WakeReason = "assigned" | "superseded" | "time-out" | "disconnected";

interface WaitingPoll {
  woken: Promise<WakeReason>;
  /** Ends the wait. Does nothing if it has already ended. */
  leave(): void;
}

/**
 * The polls that wait in this process, one per worker. A worker's second poll ends its first. The scheduler
 * (scheduler.ts) wakes the polls of workers that got a job.
 */
export class LongPolls {
  private readonly waiting = new Map<string, (why: WakeReason) => void>();

  get workerIds(): string[] {
    return [...this.waiting.keys()];
  }

  /**
   * Registers a poll. Call it before you read whether the worker has an assignment: a wake-up between an earlier read
   * and this call would be lost.
   */
  wait(workerId: string, waitMs: number, signal: AbortSignal): WaitingPoll {
    this.waiting.get(workerId)?.("superseded");
    let end: (why: WakeReason) => void = () => undefined;
    const woken = new Promise<WakeReason>((resolve) => {
      const onAbort = (): void => end("disconnected");
      const timer = setTimeout(() => end("time-out"), waitMs);
      end = (why) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        if (this.waiting.get(workerId) === end) this.waiting.delete(workerId);
        resolve(why);
      };
      signal.addEventListener("abort", onAbort);
      this.waiting.set(workerId, end);
      if (signal.aborted) end("disconnected");
    });
    return { woken, leave: () => end("time-out") };
  }

  /** Wakes the polls of these workers. Returns the ids of workers with no poll in this process. */
  wake(workerIds: string[]): string[] {
    return workerIds.filter((workerId) => {
      const end = this.waiting.get(workerId);
      end?.("assigned");
      return end === undefined;
    });
  }
}
