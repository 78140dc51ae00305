/** The last parameter of each method. */
export interface RequestOptions {
  /** If aborted, the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Overrides the client's value, in milliseconds. */
  timeoutMs?: number | undefined;
  /** Overrides the client's value. */
  maxRetries?: number | undefined;
}

/** The last parameter of a method that creates something. */
export interface CreateOptions extends RequestOptions {
  /** Repeating a request with the same key returns the first response and creates nothing. */
  idempotencyKey?: string | undefined;
}

/** For admins: the tenant that the call is about. */
export interface OfUser {
  user_id?: string | undefined;
}

/** A time: a Date, or a string in ISO 8601. */
export type Moment = Date | string;

/** A time span. `bucket_s`: length of each bucket in the response, in seconds. */
export interface TimeSpan {
  since?: Moment | undefined;
  until?: Moment | undefined;
  bucket_s?: number | undefined;
}
