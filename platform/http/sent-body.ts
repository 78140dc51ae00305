import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { InvalidRequest } from "../../core/errors";
import type { ByteRange } from "../store/object-store";
import { releasingBuffers } from "./streamed-memory";

/** The content of a Content-Range header; `total` is the final size, if known. */
export type SentRange =
  | (ByteRange & { isStatusRequest: false; total?: number })
  /** The request has no body and asks how many bytes have arrived. */
  | { isStatusRequest: true; total?: number };

/** Parses a request's Content-Range header; undefined if it is invalid. */
export function readSentRange(header: string): SentRange | undefined {
  const match = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15}|\*)$/.exec(header);
  if (!match) return undefined;
  const size = match[3] === "*" ? {} : { total: Number(match[3]) };
  if (match[1] === undefined) return { isStatusRequest: true, ...size };
  const [start, end] = [Number(match[1]), Number(match[2])];
  if (end < start || (size.total !== undefined && end >= size.total)) return undefined;
  return { isStatusRequest: false, start, end, ...size };
}

/**
 * The body of a streamed request, without its first `skipped` bytes.
 *
 * @param length declared number of bytes. Throws a 400 if more or fewer arrive. Extra bytes are not
 *   passed on.
 */
export async function* sentBytes(
  { body }: FastifyRequest,
  { length, skipped = 0 }: { length?: number; skipped?: number },
): AsyncGenerator<Buffer> {
  let passed = 0;
  if (body instanceof Readable) {
    for await (const chunk of releasingBuffers(keptOpen(body))) {
      const start = Math.max(0, skipped - passed);
      passed += chunk.length;
      if (length !== undefined && passed > length) throw mismatch(length);
      if (start < chunk.length) yield chunk.subarray(start);
    }
  }
  if (length !== undefined && passed < length) throw mismatch(length);
}

/**
 * Returns an iterator over a body. If the reader stops early, the connection stays open. The
 * stream's default iterator would close the connection.
 */
export const keptOpen = (body: Readable): AsyncIterable<Buffer> =>
  body.iterator({ destroyOnReturn: false });

const mismatch = (length: number): InvalidRequest =>
  new InvalidRequest(`the body does not have the ${length} bytes of its range`, "Content-Range");
