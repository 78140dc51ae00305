/** Why a parked poll came to an end. */
export type WakeReason = "assigned" | "superseded" | "time-out" | "parted";

interface Waiter {
  woken: Promise<WakeReason>;
  /** Ends the wait, if it has not ended; harmless after. */
  leave(): void;
}

/** Polls parked in this process, one per worker: a second poll of a worker ends its first. */
export class LongPolls {
  private readonly parked = new Map<string, (why: WakeReason) => void>();

  get workerIds(): string[] {
    return [...this.parked.keys()];
  }

  /** Parks a poll before it reads what it waits for, so that no wake-up falls in between. */
  park(workerId: string, waitMs: number, signal: AbortSignal): Waiter {
    this.parked.get(workerId)?.("superseded");
    let end: (why: WakeReason) => void = () => undefined;
    const woken = new Promise<WakeReason>((resolve) => {
      const onPart = (): void => end("parted");
      const timer = setTimeout(() => end("time-out"), waitMs);
      end = (why) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onPart);
        if (this.parked.get(workerId) === end) this.parked.delete(workerId);
        resolve(why);
      };
      signal.addEventListener("abort", onPart);
      this.parked.set(workerId, end);
      if (signal.aborted) end("parted");
    });
    return { woken, leave: () => end("time-out") };
  }

  /** Wakes the polls of these workers that are parked here; the ids of those that are not. */
  wake(workerIds: string[]): string[] {
    return workerIds.filter((workerId) => {
      const end = this.parked.get(workerId);
      end?.("assigned");
      return end === undefined;
    });
  }
}
