import { after } from "./timer.ts";

export interface ExchangeOptions {
  fetch: typeof fetch;
  /** For so long nothing may happen: before the answer, and between two pieces of it. */
  silenceMs: number;
  signal?: AbortSignal | undefined;
  /** What to throw where the connection failed, or was silent for too long. */
  failure: (reason: string, cause: unknown) => Error;
}

/**
 * One request and its answer. Ends by `close`, which whoever began it must call; by the caller's
 * signal, with the signal's reason; or by silence, as by any other failure of the connection.
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
    // Called as a method of something else, a browser's fetch refuses.
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

  /** Something has happened: silence begins anew. */
  alive(): void {
    clearTimeout(this.#timer);
    const { silenceMs } = this.#options;
    this.#timer = after(silenceMs, () => this.#controller.abort(new Silence(silenceMs)));
  }

  /** Leaves nothing open. */
  close(): void {
    clearTimeout(this.#timer);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    if (!this.#isRead) this.#controller.abort();
  }

  /** Silence counts only while something is waited for: a reader may take its time. */
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
    super(`no answer within ${ms / 1000} s`);
  }
}

/** fetch says "fetch failed" of everything, and the rest in its error's cause. */
function describe(error: unknown): string {
  // Not instanceof: the global fetch and this module may have other globals.
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
