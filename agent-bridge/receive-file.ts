import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { partialKey } from "../core/attempt-files";
import { Conflict, ForgeError, InvalidRequest } from "../core/errors";
import type { Context } from "../infra/context";
import { readSentRange, sentBytes } from "../infra/http/sent-body";
import { newId } from "../infra/ids";
import type { ObjectStore } from "../infra/store/object-store";

/** Headers of an upload, whole or in parts. */
export const fileHeaders = {
  "Content-Range": z
    .string()
    .max(64)
    .optional()
    .describe(
      "bytes a-b/total: a part; bytes */total: asks how much is there. None: the whole file",
    ),
  "X-Checksum-Sha256": z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, "must be 64 hexadecimal digits")
    .optional()
    .describe("of the whole file, in hex"),
};

export const receivedSchema = z
  .object({
    path: z.string(),
    received: z.int().describe("bytes that are there; a part goes on from here"),
    complete: z.boolean(),
    sha256: z.string().nullable().describe("of the whole file, once it is complete"),
  })
  .meta({ id: "ReceivedFile" });

export type Received = z.infer<typeof receivedSchema>;

/** One segment of a path is a plain name: no dot segment, nothing that hides a slash or ends a text. */
const SEGMENT = /^(?!\.{1,2}$)[^/\\\0]{1,255}$/;

/** @throws 400 for a path that could lead out of its folder. */
export function requirePlainPath(path: string): string {
  const segments = path.split("/");
  if (path.length > 1024 || !segments.every((segment) => SEGMENT.test(segment))) {
    throw new InvalidRequest('must be plain names with "/" between them', "path");
  }
  return path;
}

interface Upload {
  jobId: string;
  attempt: number;
  path: string;
  /** Where the file belongs once it is whole. */
  key: string;
  /** A name of its own among the uploads of this attempt. */
  partialName: string;
}

/**
 * Takes a file of an attempt, whole or in parts that follow each other. It appears under its key when all
 * of it is there and the checksum is right. A connection may break anywhere: what arrived is kept, and
 * asking tells from where to go on.
 */
export async function receiveFile(
  ctx: Context,
  { request, reply, headers }: ReceivingCall,
  { jobId, attempt, path, key, partialName }: Upload,
): Promise<Received> {
  const { store } = ctx;
  const range = headers["Content-Range"] && readSentRange(headers["Content-Range"]);
  if (headers["Content-Range"] !== undefined && !range) {
    throw new InvalidRequest('must be like "bytes 0-1023/4096" or "bytes */4096"', "Content-Range");
  }
  const checksum = headers["X-Checksum-Sha256"]?.toLowerCase();
  const total = range ? range.total : undefined;
  // Parts of a file of another size are parts of another file.
  const partial = partialKey(jobId, attempt, `${partialName}-${total ?? newId("part")}`);
  const received = (await store.sizeOf(partial)) ?? 0;
  reply.code(202);
  let there = received;
  if (!range) {
    try {
      await store.append(partial, 0, sentBytes(request, {}));
    } catch (error) {
      await store.remove(partial); // nobody could go on with it
      throw error;
    }
  } else if (!range.asks) {
    if (range.start > received) throw beyond(reply, received);
    const sent = { length: range.end + 1 - range.start, skipped: received - range.start };
    await store.append(partial, received, sentBytes(request, sent));
    there = Math.max(received, range.end + 1);
  }
  // All of it may be there although nobody was told so: then asking, too, finishes it.
  if (range && there < (range.total ?? Number.POSITIVE_INFINITY)) {
    const whole = range.asks && received === 0 ? await store.measure(key) : undefined;
    if (whole && whole.sha256 === checksum) return done(path, whole, reply);
    return { path, received: there, complete: false, sha256: null };
  }
  return await finish(store, { partial, key, path, checksum }, reply);
}

interface Gathered {
  partial: string;
  key: string;
  path: string;
  checksum: string | undefined;
}

/** Checks what has gathered, and gives it its name. */
async function finish(
  store: ObjectStore,
  { partial, key, path, checksum }: Gathered,
  reply: FastifyReply,
): Promise<Received> {
  const whole = await store.measure(partial);
  if (whole && checksum !== undefined && whole.sha256 !== checksum) {
    await store.remove(partial);
    const message = `the file's SHA-256 is ${whole.sha256}; send it anew`;
    throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
  }
  if (whole && (await store.move(partial, key))) return done(path, whole, reply);
  // The same request came twice, and the other one has moved it.
  const moved = await store.measure(key);
  if (moved && (checksum === undefined || moved.sha256 === checksum)) {
    return done(path, moved, reply);
  }
  throw new Conflict("upload_conflict", `another upload of "${path}" is in the way`, "path");
}

interface ReceivingCall {
  request: FastifyRequest;
  reply: FastifyReply;
  headers: Record<string, string | undefined>;
}

function done(
  path: string,
  { sizeBytes, sha256 }: { sizeBytes: number; sha256: string },
  reply: FastifyReply,
): Received {
  reply.code(201);
  return { path, received: sizeBytes, complete: true, sha256 };
}

function beyond(reply: FastifyReply, received: number): ForgeError {
  if (received > 0) reply.header("range", `bytes=0-${received - 1}`);
  const message = `${received} bytes are there; go on from them`;
  return new ForgeError(416, "range_not_satisfiable", message, "Content-Range");
}
