import { ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get, type Request } from "./request.ts";
import { type RetryPolicy, TransientFailure } from "./retry-policy.ts";
import { EventDecoder, type ServerSentEvent } from "./sse.ts";
import type { Transport } from "./transport.ts";

/** The server sends data at least this often, even if there are no events. */
export const KEEP_ALIVE_MS = 15_000;
/** After this time without data, the connection counts as lost. */
const SILENCE_MS = 2 * KEEP_ALIVE_MS + 5_000;
/** How long to retry during an outage. A server's restart takes less time. */
export const OUTAGE_MS = 300_000;
const LIVED_MS = 5_000;

/** Yielded by `connect` when the server says that the stream has ended. */
export const GONE: ServerSentEvent = { event: "gone", data: "{}" };
/** Yielded by `connect` for each received chunk, even if the chunk completes no event. */
export const ALIVE = Symbol("received chunk");

/** The state of an event stream, kept across connections. */
export class StreamState {
  readonly path: string;
  readonly #query: object | undefined;
  #lastEventId: string | undefined;
  #decoder = new EventDecoder();
  #openedMs = 0;
  /** Whether the current connection has received data. */
  hasReceived = false;

  constructor(path: string, query?: object) {
    this.path = path;
    this.#query = query;
  }

  /** Returns the request for a new connection. Resets all state except the last event's id. */
  request(): Request {
    this.#decoder = new EventDecoder();
    this.#openedMs = performance.now();
    this.hasReceived = false;
    const resume = this.#lastEventId && { "Last-Event-ID": this.#lastEventId };
    const headers = { Accept: "text/event-stream", "Accept-Encoding": "identity", ...resume };
    return { ...get(this.path, this.#query), headers };
  }

  /**
   * Whether the server says that the stream has ended.
   *
   * Throws ForgeHTTPError if the response is something other than an event stream.
   */
  isOver(response: Response): boolean {
    if (response.status === 204) return true;
    const kind = response.headers.get("content-type") ?? "nothing";
    if (kind.startsWith("text/event-stream")) return false;
    throw new ForgeHTTPError(`${this.path}: the response is ${kind}, not an event stream`);
  }

  *receive(chunk: Uint8Array): Generator<ServerSentEvent, void, undefined> {
    this.hasReceived = true;
    for (const event of this.#decoder.feed(chunk)) {
      yield event;
      // The next line runs only when the caller asks for another event. Otherwise, the id of this
      // event is not recorded, and the server sends the event again over the next connection.
      this.#lastEventId = event.id || this.#lastEventId;
    }
  }

  /**
   * Returns the failure for a connection that ended before the stream did.
   *
   * Resets the retry policy if the connection lasted longer than LIVED_MS.
   */
  interrupted(retryPolicy: RetryPolicy): TransientFailure {
    if (performance.now() - this.#openedMs > LIVED_MS) retryPolicy.reset();
    return new TransientFailure(new ForgeHTTPError(`${this.path}: the stream was interrupted`));
  }
}

/**
 * Yields the events of one connection, and `ALIVE` for each received chunk of bytes. Yields `GONE`
 * if the stream has ended. May reject with TransientFailure.
 */
export async function* connect(
  transport: Transport,
  following: StreamState,
  options: RequestOptions,
  silenceMs = SILENCE_MS,
): AsyncGenerator<ServerSentEvent | typeof ALIVE, void, undefined> {
  const { signal } = options;
  const opened = await transport.open(following.request(), { signal }, silenceMs);
  try {
    if (following.isOver(opened.response)) {
      yield GONE;
      return;
    }
    for await (const chunk of opened.chunks) {
      yield ALIVE;
      yield* following.receive(chunk);
    }
  } finally {
    opened.close();
  }
}

/**
 * Yields all events. Reconnects after interruptions. Ends if the server says that the stream has
 * ended (`GONE`). The caller must stop after the stream's last event: if the server only closes
 * the connection, `follow` reconnects.
 */
export async function* follow(
  transport: Transport,
  following: StreamState,
  options: RequestOptions,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const retryPolicy = transport.retryPolicy(options, OUTAGE_MS);
  for (;;) {
    try {
      for await (const event of connect(transport, following, options)) {
        if (event === GONE) return;
        if (event === ALIVE) continue;
        retryPolicy.reset();
        yield event;
      }
      throw following.interrupted(retryPolicy);
    } catch (error) {
      await transport.pause(error, retryPolicy, options.signal);
    }
  }
}
