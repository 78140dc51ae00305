import type { Readable } from "node:stream";

/** What was read or written of an object, all of it. */
export interface Measured {
  sizeBytes: number;
  sha256: string;
}

export interface StoredObject {
  /** Relative to the prefix that was listed. */
  path: string;
  sizeBytes: number;
}

/** Bytes of an object from `start` to `end`, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

/** A request that writes an object past us, straight to its store. */
export interface SignedUpload {
  url: string;
  /** All of them are signed: the request must carry them as they are. */
  headers: Record<string, string>;
}

/**
 * Bytes by key. Keys are relative, slash-separated, and never leave the store. One set of tests,
 * test/e2e/stores.test.ts, holds every store to what is said here.
 */
export interface ObjectStore {
  /** Writes the object whole or not at all, in place of one by that key. */
  put(key: string, body: Buffer): Promise<void>;
  /** The same of any size; a stream that fails leaves nothing. */
  putStream(key: string, body: AsyncIterable<Buffer>): Promise<Measured>;
  /**
   * Writes bytes from an offset on, which may not lie beyond the object's end, and makes the object where
   * there is none. What was written stays when the stream fails: its writer goes on from there.
   */
  append(key: string, offset: number, body: AsyncIterable<Buffer>): Promise<void>;
  /**
   * An object gets another name, whole and lasting, in place of one there. False when it is gone, or when
   * what is there is in the way: a file where a folder must be, or the reverse.
   */
  move(from: string, to: string): Promise<boolean>;
  /** Reads the whole object, or what the store vouches for; undefined where there is none. */
  measure(key: string): Promise<Measured | undefined>;
  /** Undefined: there is no such object. */
  sizeOf(key: string): Promise<number | undefined>;
  read(key: string, range?: ByteRange): Readable;
  /** Where a store keeps its objects as files of this machine's: the object's absolute path, if it is there. */
  localPath?(key: string): string;
  /** How much may still be written, where the store knows. */
  freeBytes?(): Promise<number>;
  /** Removes the object, if it is there. */
  remove(key: string): Promise<void>;
  /** Removes every object below a prefix that ends a path's segment. */
  removeAll(prefix: string): Promise<void>;
  /** Every object below a prefix, in order of path. */
  list(prefix: string): Promise<StoredObject[]>;
  /** Throws with what is wrong when the store is not there, or is not to be used. */
  check(): Promise<void>;
  /** An address that anybody may read the object from, for a while. Stores that have none leave it out. */
  signDownload?(key: string): Promise<string>;
  /** The same to write it: a body of just this size and checksum. */
  signUpload?(key: string, expected: Measured): Promise<SignedUpload>;
}

/** The store could not do what it was asked, and may later. */
export class StoreAway extends Error {
  override readonly name = "StoreAway";

  /**
   * @param status of the store's answer, where that is one of HTTP; undefined: there was none.
   * @param reason the store's own word for it.
   */
  constructor(
    message: string,
    readonly status?: number,
    readonly reason?: string,
  ) {
    super(message);
  }
}

/** What a file system says that is full, gone, or not to be written to. */
const AWAY = new Set(["ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EMFILE"]);

/** True when the store can't do what it was asked now, and may later. */
export const isStoreAway = (error: unknown): boolean =>
  error instanceof StoreAway ||
  (error instanceof Error && "code" in error && AWAY.has(String(error.code)));

/** Writes a value as JSON that people read too. */
export async function putJson(store: ObjectStore, key: string, value: unknown): Promise<void> {
  await store.put(key, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
}

/** @throws Error for what is no key: absolute, with a dot segment or an empty one, or with a NUL. */
export function requireKey(key: string): string {
  const segments = key.replace(/\/$/, "").split("/");
  const isPlain = segments.every((segment) => !["", ".", ".."].includes(segment));
  if (!isPlain || key.includes("\0")) throw new Error(`not a store key: ${JSON.stringify(key)}`);
  return key;
}

/** Objects in the order of their paths, whatever order the store has them in. */
export const byPath = (a: StoredObject, b: StoredObject): number =>
  a.path < b.path ? -1 : Number(a.path > b.path);
