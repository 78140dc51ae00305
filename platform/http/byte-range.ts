import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { ForgeError } from "../../core/errors";
import type { ByteRange, ObjectStore } from "../store/object-store";
import { lettingGo } from "./streamed-memory";

/**
 * Sends an object, or the range of it that was asked for. Bytes that are appended meanwhile stay out:
 * the length was told.
 *
 * @throws 416 for a range beyond its end.
 */
export function sendObject(
  store: ObjectStore,
  { key, sizeBytes: size }: { key: string; sizeBytes: number },
  range: string | undefined,
  reply: FastifyReply,
): FastifyReply {
  const asked = readByteRange(range, size);
  reply.header("accept-ranges", "bytes");
  if (asked === "unsatisfiable") {
    reply.header("content-range", `bytes */${size}`);
    throw new ForgeError(416, "range_not_satisfiable", `there are ${size} bytes`, "Range");
  }
  if (size === 0) return reply.send("");
  const bytes = asked ?? { start: 0, end: size - 1 };
  if (asked) reply.code(206).header("content-range", `bytes ${asked.start}-${asked.end}/${size}`);
  reply.header("content-length", bytes.end - bytes.start + 1);
  return reply.send(Readable.from(lettingGo(store.read(key, bytes)), { objectMode: false }));
}

/**
 * The one range that a Range header asks for, of something of this size (RFC 9110, 14.2). Undefined: no
 * range, or a form that may be ignored, as several ranges at once are.
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
