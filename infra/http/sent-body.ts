import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { InvalidRequest } from "../../core/errors";
import type { ByteRange } from "../store/object-store";

/** The bytes that an upload brings; `total` is how many there will be in all, where that is known. */
export interface SentRange extends ByteRange {
  total?: number;
}

/**
 * A request's Content-Range: where its bytes belong, or "ask" for one that only asks how much is there
 * (an asterisk in place of the offsets). Undefined for anything else.
 */
export function readSentRange(header: string): SentRange | "ask" | undefined {
  if (/^bytes \*\/(\d{1,15}|\*)$/.test(header)) return "ask";
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(header);
  if (!match) return undefined;
  const [start, end] = [Number(match[1]), Number(match[2])];
  const total = match[3] === "*" ? undefined : Number(match[3]);
  if (end < start || (total !== undefined && end >= total)) return undefined;
  return total === undefined ? { start, end } : { start, end, total };
}

/**
 * The body of a streamed request, without its first `skipped` bytes.
 *
 * @param length how many it declared to send; more or fewer are a 400, and no byte beyond is passed on.
 */
export async function* sentBytes(
  { body }: FastifyRequest,
  { length, skipped = 0 }: { length?: number; skipped?: number },
): AsyncGenerator<Buffer> {
  let passed = 0;
  if (body instanceof Readable) {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      const start = Math.max(0, skipped - passed);
      passed += chunk.length;
      if (length !== undefined && passed > length) throw mismatch(length);
      if (start < chunk.length) yield chunk.subarray(start);
    }
  }
  if (length !== undefined && passed < length) throw mismatch(length);
}

const mismatch = (length: number): InvalidRequest =>
  new InvalidRequest(`the body does not have the ${length} bytes of its range`, "Content-Range");
