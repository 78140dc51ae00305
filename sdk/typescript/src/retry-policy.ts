import { ForgeAPIError, type ForgeError, ForgeHTTPError } from "./errors.ts";

/** Status codes after which a retry may succeed. */
const TRANSIENT_STATUS = new Set([408, 429, 500, 502, 503, 504]);
/** Status codes that mean that the request had no effect. */
const NOT_HANDLED = new Set([408, 429, 503]);
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
/**
 * The longest Retry-After that is obeyed. If a response requests more, a policy with `atLeastMs`
 * pauses only for this time, and a policy without `atLeastMs` gives up.
 */
const MAX_RETRY_AFTER_MS = 60_000;

/** A failure that a retry may fix. `final`: the error to throw if there is no retry. */
export class TransientFailure extends Error {
  readonly final: ForgeError;
  readonly retryAfterMs: number;

  constructor(final: ForgeError, retryAfterMs = 0) {
    super(final.message);
    this.final = final;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Counts consecutive failures. Gives up after `maxRetries` retries, but not before `atLeastMs` have
 * passed since the first failure.
 */
export class RetryPolicy {
  readonly #maxRetries: number;
  readonly #atLeastMs: number;
  #failures = 0;
  #sinceMs: number | undefined;

  constructor(maxRetries: number, atLeastMs = 0) {
    this.#maxRetries = maxRetries;
    this.#atLeastMs = atLeastMs;
  }

  reset(): void {
    this.#failures = 0;
    this.#sinceMs = undefined;
  }

  /** Returns the pause before the next try. If no try is left, throws the final error. */
  pauseMs({ final, retryAfterMs }: TransientFailure): number {
    const now = performance.now();
    this.#sinceMs ??= now;
    const isOver = now - this.#sinceMs >= this.#atLeastMs;
    const isTooLong = retryAfterMs > MAX_RETRY_AFTER_MS && this.#atLeastMs === 0;
    if ((this.#failures >= this.#maxRetries && isOver) || isTooLong) throw final;
    const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    // Jitter: clients that were refused at the same time should not all retry at the same time.
    // A longer Retry-After applies without jitter.
    return Math.max(
      Math.min(retryAfterMs, MAX_RETRY_AFTER_MS),
      longest * (0.5 + Math.random() / 2),
    );
  }
}

/** The error for a failed response. */
export function errorForResponse(
  path: string,
  response: Response,
  body: string,
  isRepeatable: boolean,
): TransientFailure | ForgeError {
  const { status } = response;
  // A redirect (status 0 in browsers) must not send the key to another server.
  if (status < 400) {
    return new ForgeHTTPError(`${path}: HTTP ${status}: redirects are not followed`, { status });
  }
  const refusal = apiErrorOf(response, body);
  const final = refusal && status < 500 ? refusal : httpError(path, status, refusal);
  const isInFlight = status === 409 && refusal?.code === "request_in_flight";
  const mayPass = TRANSIENT_STATUS.has(status) || status > 504;
  if (isInFlight || (mayPass && (isRepeatable || NOT_HANDLED.has(status)))) {
    return new TransientFailure(final, retryAfterMs(response));
  }
  return final;
}

function httpError(path: string, status: number, refusal: ForgeAPIError | undefined): ForgeError {
  if (!refusal) {
    return new ForgeHTTPError(`${path}: HTTP ${status}, and the response is not from Forge`, {
      status,
    });
  }
  const { code, request_id } = refusal;
  return new ForgeHTTPError(`${path}: ${refusal.message}`, { status, code, request_id });
}

/** Returns the API's error. Undefined if the response is not from the API. */
function apiErrorOf(response: Response, body: string): ForgeAPIError | undefined {
  const error = objectOf(objectOf(parseJson(body))?.error);
  if (typeof error?.code !== "string") return undefined;
  return ForgeAPIError.of(response.status, {
    code: error.code,
    message: typeof error.message === "string" ? error.message : "refused",
    param: textOf(error.param),
    request_id: textOf(error.request_id) ?? response.headers.get("x-request-id") ?? undefined,
    details: objectOf(error.details),
  });
}

/** Parses JSON. Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const objectOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;

/** Parses Retry-After (seconds or a date). Returns 0 if it is missing or invalid. */
function retryAfterMs(response: Response): number {
  const value = response.headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}(\.\d{1,9})?$/.test(value)) return Number(value) * 1000;
  return Math.max(0, Date.parse(value) - Date.now()) || 0;
}
