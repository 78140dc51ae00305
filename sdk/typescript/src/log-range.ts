import { ForgeError, ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get } from "./request.ts";
import type { Transport } from "./transport.ts";

const BEYOND = 416;

export interface LogPart {
  /** Offset of the first byte: 0. */
  start?: number | undefined;
  /** Offset after the last byte; by default the log's end. */
  end?: number | undefined;
  /** The end of the log, in place of `start` and `end`. */
  tailBytes?: number | undefined;
  /** By default the latest. */
  attempt?: number | undefined;
}

/** Bytes of a log. A character may be cut in two at either end. */
export interface LogRange {
  /** The offset of the first byte. */
  start: number;
  /** How long the log is, so far. */
  total: number;
  bytes: Uint8Array;
}

export async function readLogRange(
  transport: Transport,
  path: string,
  part: LogPart,
  options: RequestOptions = {},
): Promise<LogRange> {
  // Compressed on the way, offsets would be those of something else.
  const headers = { Accept: "text/plain", "Accept-Encoding": "identity", Range: rangeOf(part) };
  const request = { ...get(path, { attempt: part.attempt }), headers, alsoStatus: BEYOND };
  const patience = transport.patience(options);
  for (;;) {
    try {
      const { response, chunks, close } = await transport.open(request, options);
      try {
        return placed(response, await joined(chunks));
      } finally {
        close();
      }
    } catch (error) {
      await transport.pause(error, patience, options.signal);
    }
  }
}

function rangeOf({ start = 0, end, tailBytes }: LogPart): string {
  if (tailBytes !== undefined) {
    if (!(tailBytes > 0)) throw new ForgeError("tailBytes must be more than 0");
    return `bytes=-${tailBytes}`;
  }
  if (!(start >= 0) || (end !== undefined && end <= start)) {
    throw new ForgeError("start must not be negative, and end must be more than start");
  }
  return `bytes=${start}-${end === undefined ? "" : end - 1}`;
}

async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function placed({ status, headers }: Response, bytes: Uint8Array): LogRange {
  // Who does not know Range, or of an empty log.
  if (status === 200) return { start: 0, total: bytes.length, bytes };
  const found = /^bytes (?:\*|(\d+)-\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  if (!found) throw new ForgeHTTPError("a partial answer does not say which part it is");
  const total = Number(found[2]);
  if (status === BEYOND) return { start: total, total, bytes: new Uint8Array() };
  return { start: Number(found[1] ?? 0), total, bytes };
}
