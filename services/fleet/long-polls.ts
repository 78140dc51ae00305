import { isUnavailable } from "../../platform/postgres/errors";
import { IS_LIVE } from "../accounts/keys";
import type { Dispatch, PollingWorker } from "../jobs/dispatch";

/** Why a wait ended. A `Dispatch` means that an attempt has started for this poll. */
type WaitEnd = "assigned" | "superseded" | "time-out" | "disconnected" | Dispatch;

/** The fields of a waiting poll that dispatch.ts needs to start an attempt. */
export type WaitingWorker = PollingWorker & { pollSeq: number };

/** An attempt that has started for a waiting poll. */
export interface Started {
  poll: WaitingWorker;
  job: Dispatch;
}

/** SQL: a CTE `polls` of the `WaitingWorker`s in the parameter `json`. */
export const GIVEN_POLLS = (json: string): string => `polls as materialized (
  select * from jsonb_to_recordset((select ${json}::jsonb))
    poll ("workerId" text, "pollSeq" bigint, "keyId" text, "leaseToken" text))`;

/** SQL: whether the key of a row of `polls` is valid. */
export const HAS_LIVE_KEY = `exists (select from api_keys where key_id = "keyId" and ${IS_LIVE} offset 0)`;

interface WaitingPoll {
  /**
   * Resolves when the wait ends. Attempts start only for polls on which this method was called.
   */
  untilEnded(): Promise<WaitEnd>;
  /** Ends the wait. Does nothing if it has already ended. */
  leave(): void;
}

interface Entry {
  worker: WaitingWorker;
  tenant: string;
  /**
   * The number of running calls of `reserve` that have this poll. While there are any, an attempt
   * may start for the poll, so it must not time out.
   */
  reservations: number;
  /**
   * The poll's wait time has passed. If the poll has `reservations`, its wait ends only when the
   * last of them ends.
   */
  hasTimedOut: boolean;
  end(woken: WaitEnd): void;
}

/**
 * The maximum number of polls that are passed to one statement. The statement may start an attempt
 * for each of these polls. The limit keeps the statement small.
 */
const MAX_RESERVED = 32;

/**
 * The polls that wait in this process, one per worker. A worker's second poll ends its first. The
 * scheduler (scheduler.ts) wakes the polls of workers that got a job.
 */
export class LongPolls {
  private readonly waiting = new Map<string, Entry>();
  /**
   * By tenant: the waiting polls on which `untilEnded` was called. Attempts start only for these
   * polls.
   */
  private readonly assignablePolls = new Map<string, Set<Entry>>();

  get workerIds(): string[] {
    return [...this.waiting.keys()];
  }

  /**
   * Registers a poll. Call it before you read whether the worker has an assignment: a wake-up
   * between an earlier read and this call would be lost.
   */
  wait(tenant: string, worker: WaitingWorker, waitMs: number, signal: AbortSignal): WaitingPoll {
    this.waiting.get(worker.workerId)?.end("superseded");
    const entry: Entry = {
      worker,
      tenant,
      reservations: 0,
      hasTimedOut: false,
      end: () => undefined,
    };
    const woken = new Promise<WaitEnd>((resolve) => {
      const onAbort = (): void => entry.end("disconnected");
      const timer = setTimeout(() => {
        entry.hasTimedOut = true;
        if (entry.reservations === 0) entry.end("time-out");
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
      untilEnded: () => {
        if (this.waiting.get(worker.workerId) === entry) this.addAssignable(entry);
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
   * Runs `assign` with polls of a tenant, at most MAX_RESERVED. `assign` may start an attempt for
   * any of them. These polls do not time out before `assign` has ended. If the database does not
   * answer, it is unknown whether an attempt has started, so all these polls are woken and their
   * handlers look for an attempt.
   */
  async reserve<T>(tenant: string, assign: (polls: WaitingWorker[]) => Promise<T>): Promise<T> {
    const reserved = firstOf(this.assignablePolls.get(tenant) ?? []);
    for (const entry of reserved) entry.reservations += 1;
    try {
      return await assign(reserved.map(({ worker }) => worker));
    } catch (error) {
      if (isUnavailable(error)) for (const entry of reserved) entry.end("assigned");
      throw error;
    } finally {
      for (const entry of reserved) {
        entry.reservations -= 1;
        if (entry.hasTimedOut && entry.reservations === 0) entry.end("time-out");
      }
    }
  }

  /**
   * Ends a poll and gives it the attempt that has started for it. Returns false if the poll no
   * longer waits: a later poll of the worker then gets the attempt.
   */
  deliver({ poll, job }: Started): boolean {
    const entry = this.waiting.get(poll.workerId);
    if (entry?.worker.pollSeq !== poll.pollSeq) return false;
    entry.end(job);
    return true;
  }

  private addAssignable(entry: Entry): void {
    const polls = this.assignablePolls.get(entry.tenant) ?? new Set();
    this.assignablePolls.set(entry.tenant, polls.add(entry));
  }

  private remove(entry: Entry): void {
    const { workerId } = entry.worker;
    if (this.waiting.get(workerId) === entry) this.waiting.delete(workerId);
    const polls = this.assignablePolls.get(entry.tenant);
    polls?.delete(entry);
    if (polls?.size === 0) this.assignablePolls.delete(entry.tenant);
  }
}

/**
 * Returns at most MAX_RESERVED polls, in the order of their workers' ids. The polls with the first
 * ids are preferred, because a job gets the worker with the first id if several workers are equally
 * capable. Leaves out polls whose wait time has passed: otherwise overlapping reservations could
 * keep such a poll waiting for ever.
 */
function firstOf(polls: Iterable<Entry>): Entry[] {
  const first: Entry[] = [];
  for (const entry of polls) {
    if (entry.hasTimedOut) continue;
    const last = first.at(-1);
    const isFull = first.length === MAX_RESERVED;
    if (isFull && last && last.worker.workerId < entry.worker.workerId) continue;
    if (isFull) first.pop();
    const at = first.findIndex(({ worker }) => worker.workerId > entry.worker.workerId);
    first.splice(at === -1 ? first.length : at, 0, entry);
  }
  return first;
}
