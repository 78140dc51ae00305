import { ForgeError } from "./errors.ts";
import type { Upload } from "./upload.ts";

/** How to tell whether a try that got no answer did what the next one is refused for. */
interface Settled {
  /** Refusals that say that nothing is left to do. */
  codes: readonly string[];
  /** Where to look at what was to be changed. */
  path: string;
  isOurs(found: unknown): boolean;
}

/** What is asked of the API, before anything is sent. */
export interface Request {
  method: string;
  path: string;
  query?: object | undefined;
  /** Sent as JSON, but for an Upload. */
  body?: object | Upload | undefined;
  headers?: Record<string, string>;
  /** It is sent with an Idempotency-Key: once made, it may be sent again without harm. */
  creates?: boolean;
  /** False: what may have arrived is not sent again. */
  isRepeatable?: boolean;
  settled?: Settled;
  /** What is an answer beside success. */
  alsoStatus?: number;
  /** Where an answer may take longer than the client's time-out, in milliseconds. */
  answerMs?: number;
}

/** For an answer that has to be worked out. */
export const SLOW_ANSWER_MS = 120_000;

export const get = (path: string, query?: object): Request => ({ method: "GET", path, query });

/** A POST that makes something, once. */
export const create = (path: string, body: object): Request => ({
  method: "POST",
  path,
  body,
  creates: true,
});

/** A POST that changes what is there. */
export const post = (path: string, body: object = {}): Request => ({ method: "POST", path, body });

/** A path with ids: path`/api/jobs/${jobId}`. Throws ForgeError for what can't be an id. */
export function path(texts: TemplateStringsArray, ...ids: string[]): string {
  return ids.reduce(
    (done, id, n) => done + segment(texts[n] ?? "", id) + texts[n + 1],
    texts[0] ?? "",
  );
}

function segment(before: string, id: unknown): string {
  // It becomes part of an address: ".." or "a/b" would be another one.
  if (typeof id === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id)) return id;
  const thing = /(?<![a-z-])([a-z-]+)s\/$/.exec(before)?.[1] ?? "thing";
  const article = /^[aeiou]/.test(thing) ? "an" : "a";
  throw new ForgeError(`${JSON.stringify(id)} is not the id of ${article} ${thing}`);
}

/** Lists are repeated; what is null or undefined is left out. */
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

/** A random text of 32 hexadecimal digits, also where the page came over plain HTTP. */
export function randomHex(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
