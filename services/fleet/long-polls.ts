import type { Dispatch, PollingWorker } from "../jobs/dispatch";

/** Why a wait ended. A `Dispatch`: the scheduler has started an attempt for this poll. */
type Woken = "assigned" | "superseded" | "time-out" | "disconnected" | Dispatch;

/** The fields of a waiting poll that the start of an attempt needs (dispatch.ts). */
export type WaitingWorker = PollingWorker & { pollSeq: number };

interface WaitingPoll {
  /** Waits until the poll is woken. From then on, the scheduler may start an attempt for it. */
  woken(): Promise<Woken>;
  /** Ends the wait. Does nothing if it has already ended. */
  leave(): void;
}

interface Entry {
  worker: WaitingWorker;
  tenant: string;
  /** The scheduler may be starting an attempt for the poll. So the poll must not time out. */
  isReserved: boolean;
  /** The poll's time is over. If it is reserved, it ends when the reservation ends. */
  isOver: boolean;
  end(woken: Woken): void;
}

/** The most polls for which one statement may start an attempt, so that the statement stays small. */
const MAX_RESERVED = 32;

/**
 * The polls that wait in this process, one per worker. A worker's second poll ends its first. The scheduler
 * (scheduler.ts) wakes the polls of workers that got a job.
 */
export class LongPolls {
  private readonly waiting = new Map<string, Entry>();
  /** By tenant: the polls whose result will be used. Attempts start only for these. */
  private readonly awaited = new Map<string, Set<Entry>>();

  get workerIds(): string[] {
    return [...this.waiting.keys()];
  }

  /**
   * Registers a poll. Call it before you read whether the worker has an assignment: a wake-up between an earlier read
   * and this call would be lost.
   */
  wait(tenant: string, worker: WaitingWorker, waitMs: number, signal: AbortSignal): WaitingPoll {
    this.waiting.get(worker.workerId)?.end("superseded");
    const entry: Entry = {
      worker,
      tenant,
      isReserved: false,
      isOver: false,
      end: () => undefined,
    };
    const woken = new Promise<Woken>((resolve) => {
      const onAbort = (): void => entry.end("disconnected");
      const timer = setTimeout(() => {
        entry.isOver = true;
        if (!entry.isReserved) entry.end("time-out");
      }, waitMs);
      entry.end = (why) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.remove(entry);
        resolve(why);
      };
      signal.addEventListener("abort", onAbort);
      this.waiting.set(worker.workerId, entry);
      if (signal.aborted) entry.end("disconnected");
    });
    return {
      woken: () => {
        if (this.waiting.get(worker.workerId) === entry) this.addAwaited(entry);
        return woken;
      },
      leave: () => entry.end("time-out"),
    };
  }

  /** Wakes the polls of these workers. Returns the ids of workers with no poll in this process. */
  wake(workerIds: string[]): string[] {
    return workerIds.filter((workerId) => {
      const entry = this.waiting.get(workerId);
      entry?.end("assigned");
      return entry === undefined;
    });
  }

  /**
   * Runs `assign` with polls of a tenant for which it may start an attempt: the newest ones, MAX_RESERVED at most. These
   * polls do not time out before `assign` has ended. If `assign` fails, it is unknown whether an attempt has started. In
   * this case, all these polls are woken, and their handlers look for an attempt.
   */
  async reserve<T>(tenant: string, assign: (polls: WaitingWorker[]) => Promise<T>): Promise<T> {
    const reserved = [...(this.awaited.get(tenant) ?? [])].slice(-MAX_RESERVED);
    for (const entry of reserved) entry.isReserved = true;
    try {
      return await assign(reserved.map(({ worker }) => worker));
    } catch (error) {
      for (const entry of reserved) entry.end("assigned");
      throw error;
    } finally {
      for (const entry of reserved) {
        entry.isReserved = false;
        if (entry.isOver) entry.end("time-out");
      }
    }
  }

  /**
   * Ends a poll with an attempt that has started for it. Returns false if the poll no longer waits: a later poll of the
   * worker gets the attempt.
   */
  deliver({ workerId, pollSeq }: WaitingWorker, job: Dispatch): boolean {
    const entry = this.waiting.get(workerId);
    if (entry?.worker.pollSeq !== pollSeq) return false;
    entry.end(job);
    return true;
  }

  private addAwaited(entry: Entry): void {
    const polls = this.awaited.get(entry.tenant) ?? new Set();
    this.awaited.set(entry.tenant, polls.add(entry));
  }

  private remove(entry: Entry): void {
    const { workerId } = entry.worker;
    if (this.waiting.get(workerId) === entry) this.waiting.delete(workerId);
    const polls = this.awaited.get(entry.tenant);
    polls?.delete(entry);
    if (polls?.size === 0) this.awaited.delete(entry.tenant);
  }
}
