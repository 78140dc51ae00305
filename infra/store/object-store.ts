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
  /** Undefined: there is no such object. */
  sizeOf(key: string): Promise<number | undefined>;
  read(key: string, range?: ByteRange): Readable;
  /** Removes the object, if it is there. */
  remove(key: string): Promise<void>;
  /** Every object below a prefix with its checksum, in order of path. */
  list(prefix: string): Promise<StoredObject[]>;
}

/** Writes a value as JSON that people read too. */
export async function putJson(store: ObjectStore, key: string, value: unknown): Promise<void> {
  await store.put(key, Buffer.from(`${JSON.stringify(value, null, 2)}\n`));
}
