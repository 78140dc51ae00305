import { WaitTimeoutError } from "./errors.ts";
import { requirePositive } from "./limits.ts";
import { after } from "./timer.ts";

/**
 * Minimum time for a poll, so that a poll right before the deadline can still succeed. If the
 * time-out of the whole wait is shorter, each poll gets the time-out of the whole wait.
 */
const MIN_POLL_MS = 1_000;

/** The deadline of a wait for a job or pipeline. `pollInterval` and `timeout` are in seconds. */
export class Deadline {
  readonly #id: string;
  readonly #pollMs: number;
  readonly #timeoutMs: number;
  readonly #endMs: number;
  #status: string | undefined;

  constructor(id: string, pollInterval = 5, timeout = Number.POSITIVE_INFINITY) {
    requirePositive("pollInterval", pollInterval);
    requirePositive("timeout", timeout);
    this.#id = id;
    this.#pollMs = pollInterval * 1000;
    this.#timeoutMs = timeout * 1000;
    this.#endMs = performance.now() + this.#timeoutMs;
  }

  /** Records the status of the last poll. Throws WaitTimeoutError after the deadline. */
  check(status: string): void {
    this.#status = status;
    if (this.#leftMs() <= 0) throw this.#error();
  }

  /** Returns the pause before the next poll. `spentMs`: time since the last poll. */
  pauseMs(spentMs = 0): number {
    return Math.max(0, Math.min(this.#pollMs - spentMs, this.#leftMs()));
  }

  /**
   * Runs one poll with its retries. Rejects with WaitTimeoutError at the deadline. A poll shortly
   * before the deadline gets more time: see MIN_POLL_MS.
   */
  async poll<T>(
    poll: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const limit = this.#limit(
      signal,
      Math.max(this.#leftMs(), Math.min(MIN_POLL_MS, this.#timeoutMs)),
    );
    try {
      return await poll(limit.signal);
    } finally {
      limit.end();
    }
  }

  /** Yields events. Ends without an error at the deadline. */
  async *listen<T>(
    events: (signal: AbortSignal) => AsyncGenerator<T, void, undefined>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<T, void, undefined> {
    const limit = this.#limit(signal, this.#leftMs());
    try {
      yield* events(limit.signal);
    } catch (error) {
      if (!(error instanceof WaitTimeoutError)) throw error;
    } finally {
      limit.end();
    }
  }

  #leftMs(): number {
    return this.#endMs - performance.now();
  }

  /**
   * Returns a signal that aborts after `ms`. If the outer signal aborts first, the returned signal
   * aborts with the same reason.
   */
  #limit(outer: AbortSignal | undefined, ms: number): { signal: AbortSignal; end(): void } {
    outer?.throwIfAborted();
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(outer?.reason);
    const timer = after(ms, () => controller.abort(this.#error()));
    outer?.addEventListener("abort", onAbort, { once: true });
    const end = (): void => {
      clearTimeout(timer);
      outer?.removeEventListener("abort", onAbort);
    };
    return { signal: controller.signal, end };
  }

  #error(): WaitTimeoutError {
    const found = this.#status ? `is ${this.#status}` : "has an unknown status";
    return new WaitTimeoutError(
      `${this.#id} ${found} after ${this.#timeoutMs / 1000} s; it goes on`,
    );
  }
}
