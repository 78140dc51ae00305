/** Differences between Node and browsers. */
export interface Platform {
  /** Environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of a local stack's stack.json, if there is one. */
  readStackFile(): string | undefined;
  createHash(): Sha256;
  /** Whether a request body can be a stream. If not, uploads have no progress events. */
  readonly streamsUploads: boolean;
  /**
   * Maximum number of event streams that all calls of `wait` together may have open at once. A
   * browser allows six connections per host, and other requests need some of these connections.
   */
  readonly maxStreams: number;
  /** Whether a failure of fetch means that nothing was sent. */
  wasNotSent(error: unknown): boolean;
}

/** Incremental SHA-256. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  /** Finishes the hash and returns it in hexadecimal. */
  hex(): string;
}
