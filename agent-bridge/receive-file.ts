import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { isManifestName, isPlainPath } from "../core/artifacts/plain-path";
import { Conflict, ForgeError, InvalidRequest } from "../core/errors";
import { partialKey } from "../core/jobs/attempt-files";
import { readSentRange, sentBytes } from "../platform/http/sent-body";
import { newId } from "../platform/ids";
import {
  type ObjectStore,
  type SizeAndChecksum,
  StoreUnavailable,
} from "../platform/store/object-store";
import { withinReserve } from "../platform/store/reserve";
import type { Context } from "../services/context";
import type { RecordedFile } from "../services/jobs/attempt-files";

/** Headers of an upload, in one request or in parts. */
export const fileHeaders = {
  "Content-Range": z
    .string()
    .max(64)
    .optional()
    .describe(
      "bytes a-b/total: a part; bytes */total: asks how much is stored; absent: the whole file",
    ),
  "X-Checksum-Sha256": z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, "must be 64 hexadecimal digits")
    .optional()
    .describe("SHA-256 of the whole file, in hex"),
};

export const receivedSchema = z
  .object({
    path: z.string(),
    received: z.int().describe("number of stored bytes; the next part starts here"),
    complete: z.boolean(),
    sha256: z.string().nullable().describe("SHA-256 of the whole file; null until complete"),
    upload: z
      .object({ url: z.string(), headers: z.record(z.string(), z.string()) })
      .optional()
      .describe(
        "a faster way than sending parts: PUT the whole file to this URL with these headers, then send this request again",
      ),
  })
  .meta({ id: "ReceivedFile" });

export type Received = z.infer<typeof receivedSchema>;

/** @throws 400 for a path that could leave its folder, or that has the manifest's name. */
export function requirePlainPath(path: string): string {
  if (!isPlainPath(path)) {
    throw new InvalidRequest('must be plain names separated by "/"', "path");
  }
  if (isManifestName(path)) {
    const message = `"${path}" is reserved for the control plane; use another name`;
    throw new InvalidRequest(message, "path");
  }
  return path;
}

interface Upload {
  jobId: string;
  attempt: number;
  path: string;
  /** The key of the file once it is complete. */
  key: string;
  /** The name of the incomplete file. Unique among the uploads of this attempt. */
  partialName: string;
  /** Finds the record of a file that was already uploaded to this path. */
  findRecorded(): Promise<RecordedFile | undefined>;
  /** Called when the upload is complete, before its move to the key. Throws to prevent the move. */
  onComplete(measured: SizeAndChecksum): Promise<void>;
  /** Called after `store.move`, even if nothing was moved. `isThere`: a file exists at the key. */
  onMoved?(isThere: boolean): Promise<void>;
  /** Called if another request has already moved the file to its key. */
  onFound?(measured: SizeAndChecksum): Promise<void>;
}

/**
 * Receives a file of an attempt, in one request or in consecutive parts. The file appears at its
 * key once it is complete and its checksum matches. If the connection breaks, the received bytes
 * are kept, and a status request returns where to continue.
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
  // The key includes the total size: a part with another total belongs to another file.
  const partial = partialKey(jobId, attempt, `${partialName}-${total ?? newId("part")}`);
  if (!range) {
    const measured = await store.putStream(partial, bytes({}));
    return await finish(store, { ...upload, partial, checksum, measured }, reply);
  }
  const received = (await store.sizeOf(partial)) ?? 0;
  reply.code(202);
  let stored = received;
  if (!range.isStatusRequest) {
    if (range.start > received) throw gapError(reply, received);
    const sent = { length: range.end + 1 - range.start, skipped: received - range.start };
    await store.append(partial, received, bytes(sent));
    stored = Math.max(received, range.end + 1);
  }
  // If bytes are missing, respond now. If all bytes are stored, even a status request goes on and
  // moves the file to its key: the request with the last part may have failed before the move.
  if (stored < (range.total ?? Number.POSITIVE_INFINITY)) {
    const recorded =
      range.isStatusRequest && received === 0 ? await upload.findRecorded() : undefined;
    if (recorded && recorded.sha256 === checksum && (await fileExists(store, upload, recorded))) {
      return done(path, recorded, reply);
    }
    const isNew = range.isStatusRequest && stored === 0;
    const signed = isNew ? await signUpload(ctx, partial, range.total, checksum) : {};
    return { path, received: stored, complete: false, sha256: null, ...signed };
  }
  // Run this process's requests for the same upload one at a time. Otherwise, after this request
  // has measured the complete file, another request could move it away, and a newer upload could
  // begin at `partial`. This request would then move the incomplete file of the newer upload.
  return await ctx.uploadMutex.runExclusive(partial, async () => {
    const found = await store.measure(partial);
    const measured = found?.sizeBytes === range.total ? found : undefined;
    return await finish(store, { ...upload, partial, checksum, measured, total }, reply);
  });
}

/**
 * The error for a store with too little free space. Uses StoreUnavailable, so that the worker keeps
 * its result and retries.
 */
const noRoom = (free: number): StoreUnavailable =>
  new StoreUnavailable(
    `the store has only ${free} bytes left, which are reserved (FORGE_STORE_RESERVE_BYTES)`,
  );

/** The largest body that S3 takes in one request. */
const MAX_SIGNED_BYTES = 5 * 1024 ** 3;

/**
 * A signed URL for a direct upload, if the store signs URLs. The store checks size and checksum.
 */
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

/**
 * Whether a recorded file is at its key. Compares the size and, if the move to the key is not
 * confirmed, the checksum.
 */
async function fileExists(
  store: ObjectStore,
  { key, onFound }: Upload,
  recorded: RecordedFile,
): Promise<boolean> {
  if ((await store.sizeOf(key)) !== recorded.sizeBytes) return false;
  if (recorded.isConfirmed) return true;
  const measured = await store.measure(key);
  if (measured?.sha256 !== recorded.sha256) return false;
  await onFound?.(measured);
  return true;
}

interface StoredUpload extends Pick<Upload, "key" | "path" | "onComplete" | "onMoved" | "onFound"> {
  partial: string;
  checksum: string | undefined;
  /**
   * Size and checksum of the complete upload; undefined if another request for this upload has
   * already moved or removed the bytes.
   */
  measured: SizeAndChecksum | undefined;
  /** The expected size, for an upload in parts. */
  total?: number | undefined;
}

/** Verifies a complete upload and moves it to its key. */
async function finish(
  store: ObjectStore,
  upload: StoredUpload,
  reply: FastifyReply,
): Promise<Received> {
  const { partial, key, path, onComplete, onMoved, onFound, checksum, measured } = upload;
  const { total = measured?.sizeBytes } = upload;
  if (measured && checksum !== undefined && measured.sha256 !== checksum) {
    await store.remove(partial);
    const message = `the file's SHA-256 is ${measured.sha256}; send the file again`;
    throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
  }
  if (measured) {
    try {
      await onComplete(measured);
    } catch (error) {
      // Remove the upload only after a conflict. Other errors may be temporary: if the upload is
      // kept, the client need not send it again.
      if (error instanceof Conflict) await store.remove(partial);
      throw error;
    }
    // If the store fails here, it is unknown whether the move happened, so `onMoved` is not called.
    const isMoved = await store.move(partial, key);
    await onMoved?.(isMoved || (await store.sizeOf(key)) !== undefined);
    if (isMoved) return done(path, measured, reply);
  }
  // Another request for this upload may have moved the file to its key. Measure the file there only
  // if its size matches.
  const moved = (await store.sizeOf(key)) === total ? await store.measure(key) : undefined;
  if (moved && (checksum === undefined || moved.sha256 === checksum)) {
    await onFound?.(moved);
    return done(path, moved, reply);
  }
  await store.remove(partial);
  const message = `another upload of "${path}" conflicts with this one`;
  throw new Conflict("upload_conflict", message, "path");
}

interface ReceivingCall {
  request: FastifyRequest;
  reply: FastifyReply;
  headers: Record<string, string | undefined>;
}

function done(path: string, { sizeBytes, sha256 }: SizeAndChecksum, reply: FastifyReply): Received {
  reply.code(201);
  return { path, received: sizeBytes, complete: true, sha256 };
}

function gapError(reply: FastifyReply, received: number): ForgeError {
  if (received > 0) reply.header("range", `bytes=0-${received - 1}`);
  const message = `${received} bytes are stored; continue from there`;
  return new ForgeError(416, "range_not_satisfiable", message, "Content-Range");
}
