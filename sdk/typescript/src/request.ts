import { ForgeError } from "./errors.ts";
import type { Upload } from "./upload.ts";

/**
 * Detects that an earlier try was applied although its response was lost.
 *
 * If a retry fails with one of `codes`, the client reads the current state from `path`. If `isOurs`
 * returns true for this state, the client treats the retry as successful.
 */
interface AppliedCheck {
  /** Error codes that mean that the change may already be applied. */
  codes: readonly string[];
  /** The path of the GET request that reads the current state. */
  path: string;
  isOurs(found: unknown): boolean;
}

/** The description of an API request. */
export interface Request {
  method: string;
  path: string;
  query?: object | undefined;
  /** Sent as JSON, except for an Upload. */
  body?: object | Upload | undefined;
  headers?: Record<string, string>;
  /** Sent with an Idempotency-Key, so that a retry is safe. */
  creates?: boolean;
  /** If false, the client retries only after failures that mean that the request had no effect. */
  isRepeatable?: boolean;
  appliedCheck?: AppliedCheck;
  /** A status code that is not an error, in addition to 2xx. */
  otherStatus?: number;
  /** Minimum time-out in milliseconds, for slow responses. A call's `timeoutMs` overrides it. */
  minTimeoutMs?: number;
}

export const RANGE_NOT_SATISFIABLE = 416;

/** Minimum time-out for previews of tables. */
export const SLOW_ANSWER_MS = 120_000;

export const get = (path: string, query?: object): Request => ({ method: "GET", path, query });

/** A POST that creates something. Its Idempotency-Key makes retries safe. */
export const create = (path: string, body: object): Request => ({
  method: "POST",
  path,
  body,
  creates: true,
});

/** A POST that changes something that exists. */
export const post = (path: string, body: object = {}): Request => ({ method: "POST", path, body });

export const put = (path: string, body: object, query?: object): Request => ({
  method: "PUT",
  path,
  query,
  body,
});

export const remove = (path: string): Request => ({ method: "DELETE", path });

/** Inserts ids: path`/api/jobs/${jobId}`. Throws ForgeError for an invalid id. */
export function path(texts: TemplateStringsArray, ...ids: string[]): string {
  return ids.reduce(
    (done, id, n) => done + segment(texts[n] ?? "", id) + texts[n + 1],
    texts[0] ?? "",
  );
}

function segment(before: string, id: unknown): string {
  // The id becomes part of the URL, and ".." or "a/b" would change the path.
  if (typeof id === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) return id;
  const thing = /(?<![a-z-])([a-z-]+)s\/$/.exec(before)?.[1] ?? "thing";
  const article = /^[aeiou]/.test(thing) ? "an" : "a";
  throw new ForgeError(`${JSON.stringify(id)} is not the id of ${article} ${thing}`);
}

/**
 * Builds a query string. Omits parameters whose value is null or undefined.
 *
 * A list becomes one parameter for each item. Times are formatted in ISO 8601.
 */
export function queryText(query: object = {}): string {
  const items = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().flatMap((each) => (each == null ? [] : [[name, textOf(name, each)]])),
  );
  return items.length > 0 ? `?${new URLSearchParams(items)}` : "";
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new ForgeError(`${name} must not be ${value}`);
  }
  if (!(value instanceof Date)) return String(value);
  if (Number.isNaN(value.getTime())) throw new ForgeError(`${name} is an invalid date`);
  return value.toISOString();
}

/** 32 random hexadecimal digits. Works in insecure contexts (plain HTTP) too. */
export function randomHex(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
