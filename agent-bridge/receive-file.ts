import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { isManifestName, isPlainPath } from "../core/artifacts/plain-path";
import { Conflict, ForgeError, InvalidRequest } from "../core/errors";
import { partialKey } from "../core/jobs/attempt-files";
import { readSentRange, sentBytes } from "../platform/http/sent-body";
import { newId } from "../platform/ids";
import { type Measured, type ObjectStore, StoreAway } from "../platform/store/object-store";
import { withinReserve } from "../platform/store/reserve";
import type { Context } from "../services/context";
import type { NotedFile } from "../services/jobs/attempt-files";

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
    upload: z
      .object({ url: z.string(), headers: z.record(z.string(), z.string()) })
      .optional()
      .describe(
        "PUT the whole file there, with these headers, then ask again: faster than by parts",
      ),
  })
  .meta({ id: "ReceivedFile" });

export type Received = z.infer<typeof receivedSchema>;

/** @throws 400 for a path that could lead out of its folder, or that takes the manifest's name. */
export function requirePlainPath(path: string): string {
  if (!isPlainPath(path)) {
    throw new InvalidRequest('must be plain names with "/" between them', "path");
  }
  if (isManifestName(path)) {
    throw new InvalidRequest(
      `"${path}" is what the control plane writes; give it another name`,
      "path",
    );
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
  /** What is known of a file that has this name already. */
  noted(): Promise<NotedFile | undefined>;
  /** Called when all of it is there, before it gets its name; throws where it may not have it any more. */
  onWhole(measured: Measured): Promise<void>;
  /** Called when it has its name, or did not get it: whether a file of that name is there. */
  onMoved?(isThere: boolean): Promise<void>;
  /** Called when it is seen to have its name, which another request gave it. */
  onSeen?(measured: Measured): Promise<void>;
}

/**
 * Takes a file of an attempt, whole or in parts that follow each other. It appears under its key when all
 * of it is there and the checksum is right. A connection may break anywhere: what arrived is kept, and
 * asking tells from where to go on.
 */
export async function receiveFile(
  ctx: Context,
  { request, reply, headers }: ReceivingCall,
  upload: Upload,
): Promise<Received> {
  const { jobId, attempt, path, partialName } = upload;
  const { store } = ctx;
  const bytes = (range: { length?: number; skipped?: number }): AsyncIterable<Buffer> =>
    withinReserve(store, ctx.config.store.reserveBytes, sentBytes(request, range), noRoom);
  const range = headers["Content-Range"] && readSentRange(headers["Content-Range"]);
  if (headers["Content-Range"] !== undefined && !range) {
    throw new InvalidRequest('must be like "bytes 0-1023/4096" or "bytes */4096"', "Content-Range");
  }
  const checksum = headers["X-Checksum-Sha256"]?.toLowerCase();
  const total = range ? range.total : undefined;
  // Parts of a file of another size are parts of another file.
  const partial = partialKey(jobId, attempt, `${partialName}-${total ?? newId("part")}`);
  if (!range) {
    const whole = await store.putStream(partial, bytes({}));
    return await finish(store, { ...upload, partial, checksum, whole }, reply);
  }
  const received = (await store.sizeOf(partial)) ?? 0;
  reply.code(202);
  let there = received;
  if (!range.asks) {
    if (range.start > received) throw beyond(reply, received);
    const sent = { length: range.end + 1 - range.start, skipped: received - range.start };
    await store.append(partial, received, bytes(sent));
    there = Math.max(received, range.end + 1);
  }
  // All of it may be there although nobody was told so: then asking, too, finishes it.
  if (there < (range.total ?? Number.POSITIVE_INFINITY)) {
    const noted = range.asks && received === 0 ? await upload.noted() : undefined;
    if (noted && noted.sha256 === checksum && (await isThere(store, upload, noted))) {
      return done(path, noted, reply);
    }
    const isNew = range.asks && there === 0;
    const signed = isNew ? await signUpload(ctx, partial, range.total, checksum) : {};
    return { path, received: there, complete: false, sha256: null, ...signed };
  }
  // One of several like requests at a time: between measuring and moving nobody else moves it away, so that
  // what another has begun anew by then is not taken for the whole.
  return await ctx.uploadMutex.runExclusive(partial, async () => {
    const measured = await store.measure(partial);
    const whole = measured?.sizeBytes === range.total ? measured : undefined;
    return await finish(store, { ...upload, partial, checksum, whole, total }, reply);
  });
}

/** To a worker the store is away: its result is worth waiting for, until there is room again. */
const noRoom = (free: number): StoreAway =>
  new StoreAway(
    `the store has only ${free} bytes left, which it keeps (FORGE_STORE_RESERVE_BYTES)`,
  );

/** The largest body that S3 takes in one request. */
const MAX_SIGNED_BYTES = 5 * 1024 ** 3;

/** A way past us, where the store has one: it checks the bytes as we would. */
async function signUpload(
  { store, config }: Context,
  partial: string,
  sizeBytes: number | undefined,
  sha256: string | undefined,
): Promise<Pick<Received, "upload">> {
  if (!store.signUpload || !config.store.signsUrls) return {};
  if (!sizeBytes || sizeBytes > MAX_SIGNED_BYTES || sha256 === undefined) return {};
  return { upload: await store.signUpload(partial, { sizeBytes, sha256 }) };
}

/** Whether a file that was complete once has its name. Where the server died that gave it that, only its bytes tell. */
async function isThere(
  store: ObjectStore,
  { key, onSeen }: Upload,
  noted: NotedFile,
): Promise<boolean> {
  if ((await store.sizeOf(key)) !== noted.sizeBytes) return false;
  if (noted.isSure) return true;
  const measured = await store.measure(key);
  if (measured?.sha256 !== noted.sha256) return false;
  await onSeen?.(measured);
  return true;
}

interface Gathered extends Pick<Upload, "key" | "path" | "onWhole" | "onMoved" | "onSeen"> {
  partial: string;
  checksum: string | undefined;
  /** What has gathered; undefined: it has gone. */
  whole: Measured | undefined;
  /** What it has to come to, where it came in parts. */
  total?: number | undefined;
}

/** Checks what has gathered, and gives it its name. */
async function finish(
  store: ObjectStore,
  gathered: Gathered,
  reply: FastifyReply,
): Promise<Received> {
  const { partial, key, path, onWhole, onMoved, onSeen, checksum, whole } = gathered;
  const { total = whole?.sizeBytes } = gathered;
  if (whole && checksum !== undefined && whole.sha256 !== checksum) {
    await store.remove(partial);
    const message = `the file's SHA-256 is ${whole.sha256}; send it anew`;
    throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
  }
  if (whole) {
    try {
      await onWhole(whole);
    } catch (error) {
      // Anything else may pass, and then it need not be sent anew.
      if (error instanceof Conflict) await store.remove(partial);
      throw error;
    }
    // Where the store breaks off here, nobody knows whether it did: then nothing is said.
    const isMoved = await store.move(partial, key);
    await onMoved?.(isMoved || (await store.sizeOf(key)) !== undefined);
    if (isMoved) return done(path, whole, reply);
  }
  // The same request came twice, and the other one has moved it. What can't be that one isn't read.
  const moved = (await store.sizeOf(key)) === total ? await store.measure(key) : undefined;
  if (moved && (checksum === undefined || moved.sha256 === checksum)) {
    await onSeen?.(moved);
    return done(path, moved, reply);
  }
  await store.remove(partial);
  throw new Conflict("upload_conflict", `another upload of "${path}" is in the way`, "path");
}

interface ReceivingCall {
  request: FastifyRequest;
  reply: FastifyReply;
  headers: Record<string, string | undefined>;
}

function done(path: string, { sizeBytes, sha256 }: Measured, reply: FastifyReply): Received {
  reply.code(201);
  return { path, received: sizeBytes, complete: true, sha256 };
}

function beyond(reply: FastifyReply, received: number): ForgeError {
  if (received > 0) reply.header("range", `bytes=0-${received - 1}`);
  const message = `${received} bytes are there; go on from them`;
  return new ForgeError(416, "range_not_satisfiable", message, "Content-Range");
}
