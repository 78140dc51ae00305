import { ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get, type Request } from "./request.ts";
import { Passing, type Patience } from "./retries.ts";
import { EventDecoder, type ServerSentEvent } from "./sse.ts";
import type { Transport } from "./transport.ts";

/** How often the server sends something, whatever happens. */
export const KEEP_ALIVE_MS = 15_000;
/** After that, a connection is taken for dead. */
const SILENCE_MS = 2 * KEEP_ALIVE_MS + 5_000;
/** For so long a follower goes on trying while nothing answers: a server's restart is shorter. */
export const OUTAGE_MS = 300_000;
const LIVED_MS = 5_000;

/** Stands for the answer that nothing more will come. */
export const GONE: ServerSentEvent = { event: "gone", data: "{}" };
/** Stands for something that arrived, whatever it was. */
export const LIFE = Symbol("a sign of life");

/** What is known of a stream of events, from one connection to the next. */
export class Following {
  readonly path: string;
  readonly #query: object | undefined;
  #lastEventId: string | undefined;
  #decoder = new EventDecoder();
  #openedMs = 0;
  /** Something arrived on the present connection. */
  hasHeard = false;

  constructor(path: string, query?: object) {
    this.path = path;
    this.#query = query;
  }

  /** Begins a connection. */
  request(): Request {
    this.#decoder = new EventDecoder();
    this.#openedMs = performance.now();
    this.hasHeard = false;
    const resume = this.#lastEventId && { "Last-Event-ID": this.#lastEventId };
    const headers = { Accept: "text/event-stream", "Accept-Encoding": "identity", ...resume };
    return { ...get(this.path, this.#query), headers };
  }

  /** Whether the server says that nothing more will come. Throws where it isn't a stream. */
  isOver(response: Response): boolean {
    if (response.status === 204) return true;
    const kind = response.headers.get("content-type") ?? "nothing";
    if (kind.startsWith("text/event-stream")) return false;
    throw new ForgeHTTPError(`${this.path}: the answer is ${kind}, not events`);
  }

  *receive(chunk: Uint8Array): Generator<ServerSentEvent, void, undefined> {
    this.hasHeard = true;
    for (const event of this.#decoder.feed(chunk)) {
      yield event;
      // Only after it was taken: who gives up in between, gets it again.
      this.#lastEventId = event.id || this.#lastEventId;
    }
  }

  /** The connection has ended, and the story has not. */
  cut(patience: Patience): Passing {
    if (performance.now() - this.#openedMs > LIVED_MS) patience.renew();
    return new Passing(new ForgeHTTPError(`${this.path}: the stream ends before its end`));
  }
}

/** The events of one connection, and signs of life. Rejects with Passing too. */
export async function* connect(
  transport: Transport,
  following: Following,
  options: RequestOptions,
  silenceMs = SILENCE_MS,
): AsyncGenerator<ServerSentEvent | typeof LIFE, void, undefined> {
  const { signal } = options;
  const opened = await transport.open(following.request(), { signal }, silenceMs);
  try {
    if (following.isOver(opened.response)) {
      yield GONE;
      return;
    }
    for await (const chunk of opened.chunks) {
      yield LIFE;
      yield* following.receive(chunk);
    }
  } finally {
    opened.close();
  }
}

/** All events, through cuts; the caller stops after the last. */
export async function* follow(
  transport: Transport,
  following: Following,
  options: RequestOptions,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const patience = transport.patience(options, OUTAGE_MS);
  for (;;) {
    try {
      for await (const event of connect(transport, following, options)) {
        if (event === GONE) return;
        if (event === LIFE) continue;
        patience.renew();
        yield event;
      }
      throw following.cut(patience);
    } catch (error) {
      await transport.pause(error, patience, options.signal);
    }
  }
}
