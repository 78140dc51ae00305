/** What Node has and a browser has not, or the other way round. */
export interface Platform {
  /** Environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The text of a local stack's stack.json, if there is one. */
  readStackFile(): string | undefined;
  createHash(): Sha256;
  /** Whether a request body can be a stream; else it goes in one piece, and nothing tells how far it is. */
  readonly streamsUploads: boolean;
  /** How many waits may listen at once: a browser has six connections to a host for everything. */
  readonly maxStreams: number;
  /** Whether a failure of fetch says that nothing was sent. */
  wasNotSent(error: unknown): boolean;
}

/** SHA-256 of bytes as they come. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  /** Ends it; in hexadecimal digits. */
  hex(): string;
}
