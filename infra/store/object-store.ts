export interface StoredObject {
  /** Relative to the prefix that was listed. */
  path: string;
  sizeBytes: number;
  sha256: string;
}

/** Bytes by key. Keys are relative, slash-separated, and never leave the store. */
export interface ObjectStore {
  /** Writes the object if there is none by that key; the bytes that are there afterwards. */
  putIfAbsent(key: string, body: Buffer): Promise<Buffer>;
  /** Every object below a prefix with its checksum, in order of path. */
  list(prefix: string): Promise<StoredObject[]>;
}
