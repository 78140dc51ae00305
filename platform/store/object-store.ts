import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";

/** Size and checksum of a whole object. */
export interface SizeAndChecksum {
  sizeBytes: number;
  sha256: string;
}

export interface StoredObject {
  /** Relative to the prefix that was listed. */
  path: string;
  sizeBytes: number;
}

/** Bytes of an object from `start` to `end`, both inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/** A request that writes an object directly to the store, not through the server. */
export interface SignedUpload {
  url: string;
  /** The request must send all these headers unchanged, because the signature covers them. */
  headers: Record<string, string>;
}

/**
 * Stores bytes by key. Keys are relative, slash-separated, and never lead out of the store.
 * test/e2e/stores.test.ts tests every store against this contract.
 */
export interface ObjectStore {
  /** Writes or replaces an object atomically. */
  put(key: string, body: Buffer): Promise<void>;
  /** Like `put`, for any size. If the stream fails, the store is unchanged. */
  putStream(key: string, body: AsyncIterable<Buffer>): Promise<SizeAndChecksum>;
  /**
   * Writes bytes from an offset on, and creates the object if it is missing. The offset may not lie
   * beyond the object's end. After a failed stream the written bytes stay, so that the writer can
   * continue.
   */
  append(key: string, offset: number, body: AsyncIterable<Buffer>): Promise<void>;
  /**
   * Renames an object atomically and durably, and replaces the target. Returns false if the source
   * is missing, or if the target conflicts: a file where a folder must be, or the reverse.
   */
  move(from: string, to: string): Promise<boolean>;
  /**
   * Returns size and checksum; undefined: no such object. Reads the whole object, unless the store
   * has verified a checksum itself.
   */
  measure(key: string): Promise<SizeAndChecksum | undefined>;
  /** Undefined: no such object. */
  sizeOf(key: string): Promise<number | undefined>;
  read(key: string, range?: ByteRange): Readable;
  /** The absolute path of an existing object. Only stores of local files have this method. */
  localPath?(key: string): string;
  /** Free space in bytes. Only stores that know it have this method. */
  freeBytes?(): Promise<number>;
  /** Removes the object if it exists. */
  remove(key: string): Promise<void>;
  /** Removes every object below a prefix. The prefix must end with a slash. */
  removeAll(prefix: string): Promise<void>;
  /** Lists every object below a prefix, ordered by path. */
  list(prefix: string): Promise<StoredObject[]>;
  /** @throws Error if the store is unavailable or can't be used. */
  check(): Promise<void>;
  /** Creates a URL that gives anybody read access to the object for a limited time. Optional. */
  signDownload?(key: string): Promise<string>;
  /** Like `signDownload`, for writing a body of exactly this size and checksum. */
  signUpload?(key: string, expected: SizeAndChecksum): Promise<SignedUpload>;
}

/** The store is unavailable. A later try may succeed. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";

  /**
   * @param status HTTP status of the store's response; undefined: no response.
   * @param reason the store's own error name.
   */
  constructor(
    message: string,
    readonly status?: number,
    readonly reason?: string,
  ) {
    super(message);
  }
}

/** Error codes of a file system that is full, gone or not writable. EMFILE: too many open files. */
const UNAVAILABLE = new Set([
  "ENOSPC",
  "EDQUOT",
  "EIO",
  "EROFS",
  "EACCES",
  "EPERM",
  "ENOTDIR",
  "EMFILE",
]);

/** Whether the store is unavailable now, so that a later try may succeed. */
export const isStoreUnavailable = (error: unknown): boolean =>
  error instanceof StoreUnavailable ||
  (error instanceof Error && "code" in error && UNAVAILABLE.has(String(error.code)));

/** Writes a value as indented JSON. */
export async function putJson(store: ObjectStore, key: string, value: unknown): Promise<void> {
  await store.put(key, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
}

/** Whether an object exists and its content is JSON that equals `value`. */
export async function holdsJson(store: ObjectStore, key: string, value: unknown): Promise<boolean> {
  if ((await store.sizeOf(key)) === undefined) return false;
  const stored = await text(store.read(key));
  try {
    return isDeepStrictEqual(JSON.parse(stored), value);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** @throws Error for an absolute key, or one with a dot segment, an empty segment or a NUL. */
export function requireKey(key: string): string {
  const segments = key.replace(/\/$/, "").split("/");
  const isPlain = segments.every((segment) => !["", ".", ".."].includes(segment));
  if (!isPlain || key.includes("\0")) throw new Error(`not a store key: ${JSON.stringify(key)}`);
  return key;
}

/** Compares objects by path. */
export const byPath = (a: StoredObject, b: StoredObject): number =>
  a.path < b.path ? -1 : Number(a.path > b.path);
