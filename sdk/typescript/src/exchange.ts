import { after } from "./timer.ts";

export interface ExchangeOptions {
  fetch: typeof fetch;
  /** Maximum time without data: before the response, and between two chunks of the response. */
  silenceMs: number;
  signal?: AbortSignal | undefined;
  /** Creates the error for a connection that failed or timed out. */
  failure: (reason: string, cause: unknown) => Error;
}

/**
 * One request and its response. The code that creates an Exchange must call `close`. If the signal
 * in the options is aborted, `send` and `chunks` reject with the signal's reason. A time-out counts
 * as a connection failure.
 */
export class Exchange {
  readonly #controller = new AbortController();
  readonly #options: ExchangeOptions;
  readonly #onAbort = (): void => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRead = false;

  constructor(options: ExchangeOptions) {
    options.signal?.throwIfAborted();
    this.#options = options;
    options.signal?.addEventListener("abort", this.#onAbort);
  }

  async send(url: string, init: RequestInit): Promise<Response> {
    // A browser's fetch fails if it is called as a method of another object.
    const { fetch } = this.#options;
    const { signal } = this.#controller;
    return await this.#listen(fetch(url, { ...init, signal, redirect: "manual" }));
  }

  async *chunks(response: Response): AsyncGenerator<Uint8Array, void, undefined> {
    if (!response.body) return;
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await this.#listen(reader.read());
      if (done) break;
      yield value;
    }
    this.#isRead = true;
  }

  /** Restarts the time-out after activity. */
  alive(): void {
    clearTimeout(this.#timer);
    const { silenceMs } = this.#options;
    this.#timer = after(silenceMs, () => this.#controller.abort(new Silence(silenceMs)));
  }

  /** Closes the connection. Idempotent. */
  close(): void {
    clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (!this.#isRead) this.#controller.abort();
  }

  /**
   * Awaits `work`, and fails after `silenceMs` without data. The time-out stops when `work` ends,
   * because the caller may need a long time to process a chunk.
   */
  async #listen<T>(work: Promise<T>): Promise<T> {
    this.alive();
    try {
      return await work;
    } catch (error) {
      this.#options.signal?.throwIfAborted();
      const { reason } = this.#controller.signal;
      const cause = reason instanceof Silence ? reason : error;
      throw this.#options.failure(describe(cause), cause);
    } finally {
      clearTimeout(this.#timer);
    }
  }
}

class Silence extends Error {
  constructor(ms: number) {
    super(`no response within ${ms / 1000} s`);
  }
}

/**
 * Returns the reason of a failure. Node's fetch reports every failure as "fetch failed". The
 * error's `cause` has the details.
 */
function describe(error: unknown): string {
  // Don't test `instanceof Error`: fetch may come from another realm, which has its own Error.
  const { message, cause } = (error ?? {}) as { message?: string; cause?: unknown };
  const { message: reason, code } = (cause ?? {}) as { message?: string; code?: string };
  return reason || code || message || String(error);
}

export async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}
