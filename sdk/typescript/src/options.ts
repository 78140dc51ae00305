/** What each method takes as its last parameter. */
export interface RequestOptions {
  /** Aborted, the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** In place of the client's, in milliseconds. */
  timeoutMs?: number | undefined;
  /** In place of the client's. */
  maxRetries?: number | undefined;
}

/** The same of a method that makes something. */
export interface CreateOptions extends RequestOptions {
  /** The same key and request again: the first one's answer, and nothing is made twice. */
  idempotencyKey?: string | undefined;
}

/** A moment: a Date, or a text as the API takes it (ISO 8601). */
export type Moment = Date | string;

/** A time span in buckets of `bucket_s` seconds. */
export interface TimeSpan {
  since?: Moment | undefined;
  until?: Moment | undefined;
  bucket_s?: number | undefined;
}
