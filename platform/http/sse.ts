import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { z } from "zod";

export const EVENT_STREAM = "text/event-stream";

/** An event as a client's parser shows it. */
export const eventSchema = z.object({
  id: z.string().optional(),
  event: z.string(),
  data: z.string().describe("JSON"),
});

export interface ServerSentEvent {
  /** What a client sends back as Last-Event-ID, to go on after this event. */
  id?: number | string;
  event: string;
  data: string;
}

/** Sent while nothing happens, so that proxies and clients see a living connection. */
export const KEEP_ALIVE = Symbol("keep-alive");

/** How often that should be, in ms. */
export const KEEP_ALIVE_MS = 15_000;

const END_GRACE_MS = 2_000;

/** Answers with a stream of events, at the pace at which the client reads; it ends when they do. */
export function sendEvents(
  reply: FastifyReply,
  events: AsyncIterable<ServerSentEvent | typeof KEEP_ALIVE>,
  signal: AbortSignal,
): FastifyReply {
  const stream = Readable.from(asText(events));
  // A client that has stopped reading would never hear that the stream is over.
  const end = (): void => {
    setTimeout(() => stream.destroy(), END_GRACE_MS).unref();
  };
  signal.addEventListener("abort", end, { once: true });
  return (
    reply
      .type(`${EVENT_STREAM}; charset=utf-8`)
      .header("cache-control", "no-store")
      // For nginx: pass on each event as it comes.
      .header("x-accel-buffering", "no")
      .send(stream)
  );
}

async function* asText(
  events: AsyncIterable<ServerSentEvent | typeof KEEP_ALIVE>,
): AsyncGenerator<string> {
  // At once, so that the client sees the headers; and how soon it should come back, in ms.
  yield "retry: 1000\n\n";
  for await (const event of events) {
    if (event === KEEP_ALIVE) yield ": still here\n\n";
    else yield format(event);
  }
}

function format({ id, event, data }: ServerSentEvent): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}`);
  return [...(id === undefined ? [] : [`id: ${id}`]), `event: ${event}`, ...lines, "", ""].join(
    "\n",
  );
}
