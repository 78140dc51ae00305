import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { z } from "zod";

export const EVENT_STREAM = "text/event-stream";

/** An event as a client's parser returns it. */
export const eventSchema = z.object({
  id: z.string().optional(),
  event: z.string(),
  data: z.string().describe("JSON"),
});

/**
 * Format of the Last-Event-ID header, unless the caller of `lastEventId` gives another format. May
 * be empty: a browser that has received no event sends an empty id.
 */
const EVENT_ID = /^[0-9]{0,15}$/;

/** The header with which a client resumes a stream. */
export const lastEventId = (description: string, id = EVENT_ID) => ({
  "Last-Event-ID": z
    .string()
    .regex(id, "is not the id of an event")
    .optional()
    .describe(description),
});

export interface ServerSentEvent {
  /** A client sends this as Last-Event-ID to resume after the event. */
  id?: number | string;
  event: string;
  data: string;
}

/** Yielded while there are no events, so that proxies and clients keep the connection open. */
export const KEEP_ALIVE = Symbol("keep-alive");

/** Interval of keep-alives, in ms. */
export const KEEP_ALIVE_MS = 15_000;

const END_GRACE_MS = 2_000;

/** Responds with a stream of events, with backpressure from the client. Ends when `events` ends. */
export function sendEvents(
  reply: FastifyReply,
  events: AsyncIterable<ServerSentEvent | typeof KEEP_ALIVE>,
  signal: AbortSignal,
): FastifyReply {
  const stream = Readable.from(asText(events));
  // After `signal` is aborted, give the stream time to end, then destroy it. If the client has
  // stopped reading, the stream would never end by itself.
  const end = (): void => {
    setTimeout(() => stream.destroy(), END_GRACE_MS).unref();
  };
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return (
    reply
      .type(`${EVENT_STREAM}; charset=utf-8`)
      .header("cache-control", "no-store")
      // Makes nginx forward each event without buffering.
      .header("x-accel-buffering", "no")
      .send(stream)
  );
}

async function* asText(
  events: AsyncIterable<ServerSentEvent | typeof KEEP_ALIVE>,
): AsyncGenerator<string> {
  // This first chunk is sent at once, together with the response's headers. `retry` is the delay in
  // ms after which a client reconnects.
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
