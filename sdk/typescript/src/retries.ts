import { ForgeAPIError, type ForgeError, ForgeHTTPError } from "./errors.ts";

/** Answers after which the same request may succeed. */
const PASSING = new Set([408, 429, 500, 502, 503, 504]);
/** Those that say that nothing was done. */
const NOT_HANDLED = new Set([408, 429, 503]);
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8_000;
/** Who says Retry-After beyond that is not waited for, or, in an outage, asked earlier. */
const MAX_ASKED_MS = 60_000;

/** It may pass: the same request is worth sending again. Else `final` is to be thrown. */
export class Passing extends Error {
  readonly final: ForgeError;
  readonly retryAfterMs: number;

  constructor(final: ForgeError, retryAfterMs = 0) {
    super(final.message);
    this.final = final;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Counts failures in a row, and ends after so many, or later: after so long a time of them. */
export class Patience {
  readonly #maxRetries: number;
  readonly #atLeastMs: number;
  #failures = 0;
  #sinceMs: number | undefined;

  constructor(maxRetries: number, atLeastMs = 0) {
    this.#maxRetries = maxRetries;
    this.#atLeastMs = atLeastMs;
  }

  renew(): void {
    this.#failures = 0;
    this.#sinceMs = undefined;
  }

  /** How long to wait before the next try; throws what is final when there shall be none. */
  pauseMs({ final, retryAfterMs }: Passing): number {
    const now = performance.now();
    this.#sinceMs ??= now;
    const isOver = now - this.#sinceMs >= this.#atLeastMs;
    const isTooLong = retryAfterMs > MAX_ASKED_MS && this.#atLeastMs === 0;
    if ((this.#failures >= this.#maxRetries && isOver) || isTooLong) throw final;
    const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    // Not all who were refused together shall come back together.
    return Math.max(Math.min(retryAfterMs, MAX_ASKED_MS), longest * (0.5 + Math.random() / 2));
  }
}

/** What becomes of an answer that says no. */
export function failureOfAnswer(
  path: string,
  response: Response,
  body: string,
  isRepeatable: boolean,
): Passing | ForgeError {
  const { status } = response;
  // A browser shows a redirect as status 0. The key is for the API alone.
  if (status < 400) {
    return new ForgeHTTPError(`${path}: HTTP ${status}: redirects are not followed`, { status });
  }
  const refusal = refusalOf(response, body);
  const final = refusal && status < 500 ? refusal : useless(path, status, refusal);
  const isInFlight = status === 409 && refusal?.code === "request_in_flight";
  const mayPass = PASSING.has(status) || status > 504;
  if (isInFlight || (mayPass && (isRepeatable || NOT_HANDLED.has(status)))) {
    return new Passing(final, retryAfterMs(response));
  }
  return final;
}

function useless(path: string, status: number, refusal: ForgeAPIError | undefined): ForgeError {
  if (!refusal) {
    return new ForgeHTTPError(`${path}: HTTP ${status}, and the answer is not Forge's`, { status });
  }
  const { code, request_id } = refusal;
  return new ForgeHTTPError(`${path}: ${refusal.message}`, { status, code, request_id });
}

/** The error that the API answered; none where something else answered. */
function refusalOf(response: Response, body: string): ForgeAPIError | undefined {
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

/** Undefined for what is not JSON. */
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

/** From seconds, or from a date; 0 where it is neither. */
function retryAfterMs(response: Response): number {
  const value = response.headers.get("retry-after")?.trim() ?? "";
  if (/^\d{1,9}(\.\d{1,9})?$/.test(value)) return Number(value) * 1000;
  return Math.max(0, Date.parse(value) - Date.now()) || 0;
}
