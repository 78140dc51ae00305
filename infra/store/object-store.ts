export interface StoredObject {
  /** Relative to the prefix that was listed. */
  path: string;
  sizeBytes: number;
  sha256: string;
}

/** Bytes by key. Keys are relative, slash-separated, and never leave the store. */
export interface ObjectStore {
  /** Writes the object whole or not at all, in place of one by that key. */
  put(key: string, body: Buffer): Promise<void>;
  /** Every object below a prefix with its checksum, in order of path. */
  list(prefix: string): Promise<StoredObject[]>;
}
