import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { ForgeError } from "../../core/errors";
import type { ByteRange, ObjectStore } from "../store/object-store";
import { releasingBuffers } from "./streamed-memory";

/**
 * Sends an object, or the range of it that the client requested. Bytes that are appended to the
 * object meanwhile are not sent. @throws 416 for a range beyond the end.
 */
export function sendObject(
  store: ObjectStore,
  { key, sizeBytes: size }: { key: string; sizeBytes: number },
  range: string | undefined,
  reply: FastifyReply,
): FastifyReply {
  const requested = readByteRange(range, size);
  reply.header("accept-ranges", "bytes");
  if (requested === "unsatisfiable") {
    reply.header("content-range", `bytes */${size}`);
    throw new ForgeError(416, "range_not_satisfiable", `the object has ${size} bytes`, "Range");
  }
  if (size === 0) return reply.send("");
  const bytes = requested ?? { start: 0, end: size - 1 };
  if (requested) {
    reply.code(206).header("content-range", `bytes ${bytes.start}-${bytes.end}/${size}`);
  }
  reply.header("content-length", bytes.end - bytes.start + 1);
  return reply.send(Readable.from(releasingBuffers(store.read(key, bytes)), { objectMode: false }));
}

/**
 * Parses a Range header with a single range for content of this size (RFC 9110, 14.2). Undefined:
 * no range, or a form that a server may ignore, such as several ranges.
 */
export function readByteRange(
  header: string | undefined,
  size: number,
): ByteRange | "unsatisfiable" | undefined {
  const match = /^\s*bytes\s*=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? "");
  if (!match) return undefined;
  const [, first = "", last = ""] = match;
  if (first === "") {
    const length = Number(last);
    if (last === "") return undefined;
    if (length === 0 || size === 0) return "unsatisfiable";
    return { start: Math.max(0, size - length), end: size - 1 };
  }
  const start = Number(first);
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= size ? "unsatisfiable" : { start, end };
}
