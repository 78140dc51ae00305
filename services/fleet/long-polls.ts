import type { Dispatch, PollingWorker } from "../jobs/dispatch";

/** Why a wait ended. A `Dispatch`: the scheduler has started an attempt for this poll. */
export type Woken = "assigned" | "superseded" | "time-out" | "disconnected" | Dispatch;

/** A poll that waits, as the start of an attempt needs it (dispatch.ts). */
export type WaitingWorker = PollingWorker & { pollSeq: number };

interface WaitingPoll {
  woken: Promise<Woken>;
  /** Ends the wait. Does nothing if it has already ended. */
  leave(): void;
}

interface Entry {
  worker: WaitingWorker;
  tenant: string;
  /** When the wait ends, by performance.now(). */
  until: number;
  end(woken: Woken): void;
}

/** The most polls per tenant for which the scheduler may start an attempt, so that its statement stays small. */
const MAX_STARTABLE = 32;
/** An attempt starts only for a poll that waits at least this much longer, in ms: the poll must not end meanwhile. */
const LEFT_MS = 2_000;

/**
 * The polls that wait in this process, one per worker. A worker's second poll ends its first. The scheduler
 * (scheduler.ts) wakes the polls of workers that got a job.
 */
export class LongPolls {
  private readonly waiting = new Map<string, Entry>();
  private readonly ofTenant = new Map<string, Set<Entry>>();

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
      until: performance.now() + waitMs,
      end: () => undefined,
    };
    const woken = new Promise<Woken>((resolve) => {
      const onAbort = (): void => entry.end("disconnected");
      const timer = setTimeout(() => entry.end("time-out"), waitMs);
      entry.end = (why) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.remove(entry);
        resolve(why);
      };
      signal.addEventListener("abort", onAbort);
      this.add(entry);
      if (signal.aborted) entry.end("disconnected");
    });
    return { woken, leave: () => entry.end("time-out") };
  }

  /** Wakes the polls of these workers. Returns the ids of workers with no poll in this process. */
  wake(workerIds: string[]): string[] {
    return workerIds.filter((workerId) => {
      const entry = this.waiting.get(workerId);
      entry?.end("assigned");
      return entry === undefined;
    });
  }

  /** Some polls of a tenant for which the scheduler may start an attempt. */
  startable(tenant: string): WaitingWorker[] {
    const found: WaitingWorker[] = [];
    const latest = performance.now() + LEFT_MS;
    for (const { worker, until } of this.ofTenant.get(tenant) ?? []) {
      if (until > latest) found.push(worker);
      if (found.length === MAX_STARTABLE) break;
    }
    return found;
  }

  /**
   * Ends a poll with an attempt that has started for it. Returns false if the poll no longer waits: a later poll of the
   * worker gets the attempt.
   */
  dispatch({ workerId, pollSeq }: WaitingWorker, job: Dispatch): boolean {
    const entry = this.waiting.get(workerId);
    if (entry?.worker.pollSeq !== pollSeq) return false;
    entry.end(job);
    return true;
  }

  private add(entry: Entry): void {
    this.waiting.set(entry.worker.workerId, entry);
    const polls = this.ofTenant.get(entry.tenant) ?? new Set();
    this.ofTenant.set(entry.tenant, polls.add(entry));
  }

  private remove(entry: Entry): void {
    const { workerId } = entry.worker;
    if (this.waiting.get(workerId) === entry) this.waiting.delete(workerId);
    const polls = this.ofTenant.get(entry.tenant);
    polls?.delete(entry);
    if (polls?.size === 0) this.ofTenant.delete(entry.tenant);
  }
}
