import { ForgeError, ForgeHTTPError } from "./errors.ts";
import type { RequestOptions } from "./options.ts";
import { get, RANGE_NOT_SATISFIABLE } from "./request.ts";
import type { Transport } from "./transport.ts";

export interface LogPart {
  /** Offset of the first byte. Default: 0. */
  start?: number | undefined;
  /** Offset after the last byte. Default: the log's end. */
  end?: number | undefined;
  /** Number of bytes to read from the log's end. If set, `start` and `end` are ignored. */
  tailBytes?: number | undefined;
  /** Default: the latest attempt. */
  attempt?: number | undefined;
}

/** Bytes of a log. May begin or end inside a multi-byte character. */
export interface LogRange {
  /** The offset of the first byte. */
  start: number;
  /** The current length of the log. */
  total: number;
  bytes: Uint8Array;
}

export async function readLogRange(
  transport: Transport,
  path: string,
  part: LogPart,
  options: RequestOptions = {},
): Promise<LogRange> {
  // Compression would change the offsets.
  const headers = { Accept: "text/plain", "Accept-Encoding": "identity", Range: rangeOf(part) };
  const request = {
    ...get(path, { attempt: part.attempt }),
    headers,
    otherStatus: RANGE_NOT_SATISFIABLE,
  };
  const retryPolicy = transport.retryPolicy(options);
  for (;;) {
    try {
      const { response, chunks, close } = await transport.open(request, options);
      try {
        return placed(response, await joined(chunks));
      } finally {
        close();
      }
    } catch (error) {
      await transport.pause(error, retryPolicy, options.signal);
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
  const parts: BlobPart[] = [];
  for await (const chunk of chunks) parts.push(chunk as BlobPart);
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function placed({ status, headers }: Response, bytes: Uint8Array): LogRange {
  // Status 200: the server does not support Range and sends the whole log, or the log is empty.
  if (status === 200) return { start: 0, total: bytes.length, bytes };
  const found = /^bytes (?:\*|(\d+)-\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  if (!found) throw new ForgeHTTPError("a partial response has no valid Content-Range");
  const total = Number(found[2]);
  if (status === RANGE_NOT_SATISFIABLE) return { start: total, total, bytes: new Uint8Array() };
  return { start: Number(found[1] ?? 0), total, bytes };
}
