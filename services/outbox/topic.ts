/**
 * How a delivery ended:
 * - `delivered`: the receiver has the entry.
 * - `accepted`: the receiver is working on the entry, and removes it when the work is done. Until
 *   then, the courier repeats the delivery.
 * - `obsolete`: nothing was sent, because the entry is no longer needed.
 * - `not_awaited`: the receiver answered, but does not wait for the entry yet. The courier delivers
 *   the entry again later.
 */
export type Delivery = "delivered" | "accepted" | "obsolete" | "not_awaited";

/** Log fields of an entry. `tries` is how often it was postponed, if the topic counts that. */
export interface EntryLogFields {
  tries?: number;
  [fact: string]: string | number | undefined;
}

/**
 * One kind of outbox entry: where entries are stored, and how an entry is delivered. A delivery may
 * happen more than once, so it must be idempotent for its receiver.
 */
export interface Topic<Entry, Key> {
  /** Name of the loop in logs and metrics. */
  readonly name: string;
  readonly sweepMs: number;
  /** Maximum number of parallel deliveries. */
  readonly concurrency: number;
  /**
   * If true, the courier claims entries only while no delivery is in progress, so that later
   * entries can't overtake earlier ones.
   */
  readonly claimsWhenIdle?: boolean;
  /** Time between two tries while the receiver is down. */
  readonly pauseMs: number;

  /**
   * Subscribes to commits of this process. If omitted, only sweeps find entries.
   *
   * @param onCommit called with the key of an entry to deliver at once, or without a key if the
   *   entry is due later.
   * @returns a function that unsubscribes.
   */
  subscribe?(onCommit: (key?: Key) => void): () => unknown;
  /** The entry that was just committed; undefined if it has been delivered. */
  find?(key: Key): Promise<Entry | undefined>;
  /**
   * Leases due entries, so that no other process delivers them at the same time. Holds no row lock
   * afterwards.
   *
   * @param limit 1 while the receiver is down: a single entry tests whether the receiver is back. A
   *   topic may return more entries than the limit. The additional entries wait for a free slot.
   *   Their lease must last longer than this wait.
   */
  claim(limit: number): Promise<Entry[]>;
  /** @throws if the receiver refuses the entry or can't be reached, or if Postgres fails. */
  deliver(entry: Entry, stopping: AbortSignal): Promise<Delivery>;
  /** Removes delivered entries. Omitted if `deliver` records the delivery itself. */
  remove?(entries: Entry[]): Promise<void>;
  /**
   * Postpones an entry by `forS` seconds. If omitted, an undelivered entry waits until its lease
   * expires.
   */
  postpone?(entry: Entry, forS: number, why: string): Promise<void>;
  /**
   * Called after a failed delivery. Returns why the receiver is down; undefined if it is up: the
   * entry is then at fault.
   */
  outageOf(error: unknown): Promise<string | undefined>;
  /**
   * Whether a receiver that was down answers again. Called if no entry is due. If omitted, the
   * delivery of the next entry is the test.
   */
  isBack?(): Promise<boolean>;
  logFieldsOf(entry: Entry): EntryLogFields;
  /** Label of the call in `forge_temporal_calls_total`. If omitted, calls are not counted. */
  callOf?(entry: Entry): string;
}
