import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import {
  type ByteRange,
  type ObjectStore,
  requireKey,
  type SizeAndChecksum,
  StoreUnavailable,
} from "./object-store";
import { PartedUpload } from "./parted-upload";
import { gather, type Piece, pieceFolder, pieceKey } from "./pieces";
import { missing, S3Bucket } from "./s3-bucket";
import { isMissing, orUnavailable } from "./s3-client";

const MEBIBYTE = 1024 * 1024;
/**
 * If the last piece has at least this size, an append adds a new piece. Otherwise the append
 * rewrites the last piece together with the new bytes, so that a log has few pieces.
 */
const SMALL_PIECE_BYTES = 256 * 1024;
const PIECE_BYTES = 8 * MEBIBYTE;
/**
 * The largest object that one request copies. Larger objects are copied in parts: S3 sends nothing
 * while it copies, so a long copy would exceed the idle time-out of the connection.
 */
const MAX_SINGLE_BYTES = 256 * MEBIBYTE;

/**
 * The object store as an S3 bucket. S3 has no append: a growing object is a folder of pieces (see
 * pieces.ts) until `move` joins them.
 */
export class S3Store extends S3Bucket implements ObjectStore {
  async putStream(key: string, body: AsyncIterable<Buffer>): Promise<SizeAndChecksum> {
    const hash = createHash("sha256");
    let sizeBytes = 0;
    const upload = await this.partedUpload(key);
    try {
      for await (const chunk of body) {
        hash.update(chunk);
        sizeBytes += chunk.length;
        await orUnavailable(upload.write(chunk));
      }
      await orUnavailable(upload.complete());
    } catch (error) {
      await upload.abort();
      throw error;
    }
    return { sizeBytes, sha256: hash.digest("hex") };
  }

  async append(key: string, offset: number, body: AsyncIterable<Buffer>): Promise<void> {
    const last = (await this.pieces(key)).at(-1);
    const isContinued =
      last !== undefined && last.end === offset && last.end - last.start < SMALL_PIECE_BYTES;
    const held: Buffer[] = isContinued ? [await buffer(this.read(pieceKey(key, last.start)))] : [];
    let start = isContinued ? last.start : offset;
    let heldBytes = offset - start;
    let isNew = last === undefined;
    const write = async (): Promise<void> => {
      await this.put(pieceKey(key, start), Buffer.concat(held));
      held.length = 0;
      start += heldBytes;
      heldBytes = 0;
      isNew = false;
    };
    try {
      for await (const chunk of body) {
        held.push(chunk);
        heldBytes += chunk.length;
        isNew = true;
        if (heldBytes >= PIECE_BYTES) await write();
      }
    } finally {
      if (isNew) await write();
    }
  }

  async move(from: string, to: string): Promise<boolean> {
    try {
      const sizeBytes = await super.sizeOf(from);
      if (sizeBytes !== undefined && sizeBytes <= MAX_SINGLE_BYTES) {
        await this.copy(from, to);
      } else {
        const pieces = sizeBytes === undefined ? await this.pieces(from) : [whole(sizeBytes)];
        if (pieces.length === 0) return false;
        await this.join(from, pieces, to);
      }
    } catch (error) {
      if (isInTheWay(error)) return false;
      throw error;
    }
    await this.remove(from);
    return true;
  }

  /**
   * Joins pieces into one object. S3 copies large pieces itself; the server reads and uploads small
   * ones.
   */
  private async join(from: string, pieces: Piece[], to: string): Promise<void> {
    const upload = await this.partedUpload(to, pieces.at(-1)?.end);
    try {
      for (const piece of pieces) {
        const key = piece.isWhole ? from : pieceKey(from, piece.start);
        const bytes = { start: piece.skipped, end: piece.end - piece.start - 1 };
        const isCopied =
          bytes.end >= bytes.start && (await orUnavailable(upload.copy(this.sourceOf(key), bytes)));
        if (isCopied || bytes.end < bytes.start) continue;
        for await (const chunk of this.read(key, bytes)) await orUnavailable(upload.write(chunk));
      }
      await orUnavailable(upload.complete());
    } catch (error) {
      await upload.abort();
      throw error;
    }
  }

  async measure(key: string): Promise<SizeAndChecksum | undefined> {
    const sizeBytes = await this.sizeOf(key);
    if (sizeBytes === undefined) return undefined;
    const verified = await this.checksumOf(key);
    if (verified !== undefined) return { sizeBytes, sha256: verified };
    const hash = createHash("sha256");
    let read = 0;
    try {
      for await (const chunk of this.read(key)) {
        hash.update(chunk);
        read += chunk.length;
      }
    } catch (error) {
      if (isMissing(error)) return undefined; // moved in the meantime
      throw error;
    }
    return { sizeBytes: read, sha256: hash.digest("hex") };
  }

  override async sizeOf(key: string): Promise<number | undefined> {
    return (await super.sizeOf(key)) ?? (await this.pieces(key)).at(-1)?.end;
  }

  read(key: string, range?: ByteRange): Readable {
    return Readable.from(this.chunksOf(requireKey(key), range), { objectMode: false });
  }

  private async *chunksOf(key: string, range?: ByteRange): AsyncGenerator<Buffer> {
    const start = range?.start ?? 0;
    const end = range?.end ?? Number.MAX_SAFE_INTEGER;
    const body = await this.open(key, start, end);
    if (body) {
      yield* this.stream(key, start, end, body);
      return;
    }
    const pieces = await this.pieces(key);
    if (pieces.length === 0) throw missing(key);
    for (const piece of pieces) {
      const from = Math.max(start, piece.start + piece.skipped);
      const to = Math.min(end, piece.end - 1);
      if (from > to) continue;
      yield* this.stream(pieceKey(key, piece.start), from - piece.start, to - piece.start);
    }
  }

  override async remove(key: string): Promise<void> {
    await super.remove(key);
    await this.removeAll(pieceFolder(key));
  }

  private async pieces(key: string): Promise<Piece[]> {
    return gather(await this.list(pieceFolder(key)));
  }

  private async partedUpload(key: string, sizeBytes?: number): Promise<PartedUpload> {
    return new PartedUpload(await this.s3(), this.at(key), sizeBytes);
  }
}

const whole = (sizeBytes: number): Piece => ({
  start: 0,
  end: sizeBytes,
  skipped: 0,
  isWhole: true,
});

/**
 * Errors of S3 servers that store objects in a file system: a file is where a folder must be, or
 * the reverse.
 */
const MOVE_CONFLICT_CODES = new Set(["ObjectParentIsFile", "ExistingObjectIsDirectory"]);

const isInTheWay = (error: unknown): boolean =>
  isMissing(error) ||
  (error instanceof StoreUnavailable && MOVE_CONFLICT_CODES.has(error.reason ?? ""));
