import { createServer, type IncomingMessage, request as send } from "node:http";
import { close, listen } from "./local-server";

/** A client's request and the response to it. A body that is not JSON is recorded as `Bytes`. */
export interface Exchange {
  request: {
    method: string;
    path: string;
    query: Record<string, string | string[]>;
    headers: Record<string, string>;
    body?: unknown;
  };
  answer: { status: number; headers: Record<string, string>; body?: unknown };
}

export interface Recorder {
  url: string;
  /** Before each step, the client sends a POST request to this URL. */
  stepUrl: string;
  /** The exchanges of each step, in the order of the requests. */
  steps: Exchange[][];
  close(): Promise<void>;
}

/**
 * The response headers that are recorded: those that a client may use. Dates and lengths are left
 * out, because they change with each response.
 */
const RESPONSE_HEADERS =
  /^(content-type|x-forge-.*|retry-after|location|content-range|etag|idempotency-replayed)$/;
const ASKED =
  /^(content-type|accept|idempotency-key|last-event-id|range|x-forge-client|x-checksum-.*)$/;

const NEXT_STEP = "/-/step";

/** A proxy that forwards everything unchanged, and records it. */
export async function recordExchanges(target: string): Promise<Recorder> {
  const steps: Exchange[][] = [];
  const server = createServer((given, reply) => {
    if (given.url === NEXT_STEP) {
      steps.push([]);
      reply.end();
      return;
    }
    const step = steps.at(-1) ?? [];
    const place = step.push(UNANSWERED) - 1;
    const forwarded = send(new URL(given.url ?? "/", target), {
      method: given.method,
      headers: given.headers,
    });
    const sent = collect(given);
    forwarded.on("response", (answer) => {
      const received = collect(answer);
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(reply);
      answer.on("close", () => {
        step[place] = exchangeOf(given, sent(), answer, received());
      });
      // If the client closes a stream early, abort the forwarded request, too. This closes the
      // server's response, and the exchange is recorded.
      reply.on("close", () => forwarded.destroy());
    });
    forwarded.on("error", () => reply.destroy());
    given.pipe(forwarded);
  });
  const url = await listen(server);
  return { url, stepUrl: url + NEXT_STEP, steps, close: () => close(server) };
}

const UNANSWERED: Exchange = {
  request: { method: "?", path: "?", query: {}, headers: {} },
  answer: { status: 0, headers: {} },
};

function collect(stream: IncomingMessage): () => Buffer {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks);
}

function exchangeOf(
  given: IncomingMessage,
  sent: Buffer,
  answer: IncomingMessage,
  received: Buffer,
): Exchange {
  return {
    request: requestOf(given, sent),
    answer: {
      status: answer.statusCode ?? 0,
      headers: headersOf(answer, RESPONSE_HEADERS),
      ...bodyOf(received),
    },
  };
}

/** The recorded form of a request whose body has been read. */
export function requestOf(given: IncomingMessage, body: Buffer): Exchange["request"] {
  const url = new URL(given.url ?? "/", "http://forge");
  return {
    method: given.method ?? "GET",
    path: decodeURIComponent(url.pathname),
    query: queryOf(url),
    headers: headersOf(given, ASKED),
    ...bodyOf(body),
  };
}

function queryOf({ searchParams }: URL): Record<string, string | string[]> {
  const names = [...new Set(searchParams.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const values = searchParams.getAll(name);
      // Copy the list, because Node has created it with a prototype that jest's comparisons don't
      // recognise.
      return [name, values.length > 1 ? [...values] : (values[0] ?? "")];
    }),
  );
}

function headersOf({ headers }: IncomingMessage, wanted: RegExp): Record<string, string> {
  const found = Object.entries(headers).filter(([name]) => wanted.test(name));
  return Object.fromEntries(found.map(([name, value]) => [name, String(value)]));
}

/** A body that is not JSON. */
type Bytes = { $text: string } | { $base64: string };

function bodyOf(bytes: Buffer): { body?: unknown } {
  if (bytes.length === 0) return {};
  const text = bytes.toString();
  try {
    return { body: JSON.parse(text) as unknown };
  } catch {
    const isText = Buffer.from(text).equals(bytes) && !text.includes("\0");
    const body: Bytes = isText ? { $text: text } : { $base64: bytes.toString("base64") };
    return { body };
  }
}

/** The bytes of a recorded body. */
export function bytesOf(body: unknown): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  if (typeof body === "object" && body !== null) {
    if ("$text" in body) return Buffer.from(String(body.$text));
    if ("$base64" in body) return Buffer.from(String(body.$base64), "base64");
  }
  return Buffer.from(JSON.stringify(body));
}
