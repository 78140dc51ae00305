import type { Readable } from "node:stream";

export interface StoredObject {
  /** Relative to the prefix that was listed. */
  path: string;
  sizeBytes: number;
  sha256: string;
}

/** Bytes of an object from `start` to `end`, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

/** Bytes by key. Keys are relative, slash-separated, and never leave the store. */
export interface ObjectStore {
  /** Writes the object whole or not at all, in place of one by that key. */
  put(key: string, body: Buffer): Promise<void>;
  /** The same of any size; a stream that fails leaves nothing. */
  putStream(key: string, body: AsyncIterable<Buffer>): Promise<Omit<StoredObject, "path">>;
  /**
   * Writes bytes from an offset on, which may not lie beyond the object's end, and makes the object where
   * there is none. What was written stays when the stream fails: its writer goes on from there.
   */
  append(key: string, offset: number, body: AsyncIterable<Buffer>): Promise<void>;
  /**
   * What was appended becomes an object by another name, whole and lasting, in place of one there. False
   * when it is gone, or when what is there is in the way: a file where a folder must be, or the reverse.
   */
  move(from: string, to: string): Promise<boolean>;
  /** Reads the whole object; undefined where there is none. */
  measure(key: string): Promise<Omit<StoredObject, "path"> | undefined>;
  /** Undefined: there is no such object. */
  sizeOf(key: string): Promise<number | undefined>;
  read(key: string, range?: ByteRange): Readable;
  /** Removes the object, if it is there. */
  remove(key: string): Promise<void>;
  /** Removes every object below a prefix that ends a path's segment. */
  removeAll(prefix: string): Promise<void>;
  /** Every object below a prefix with its checksum, in order of path. */
  list(prefix: string): Promise<StoredObject[]>;
}

/** What a file system says that is full, gone, or not to be written to. */
const AWAY = new Set(["ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EMFILE"]);

/** True when the store can't do what it was asked now, and may later. */
export const isStoreAway = (error: unknown): boolean =>
  error instanceof Error && "code" in error && AWAY.has(String(error.code));

/** Writes a value as JSON that people read too. */
export async function putJson(store: ObjectStore, key: string, value: unknown): Promise<void> {
  await store.put(key, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
}
