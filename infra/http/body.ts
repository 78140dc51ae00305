import { InvalidRequest } from "../../core/errors";

/** With the u flag, a whole pair is one code point and no surrogate. */
const HALF_PAIR = /\p{Surrogate}/u;
const HALF_PAIRS = /\p{Surrogate}/gu;

/**
 * Refuses what JSON allows and Postgres can't hold, and nesting that only an attack has: NUL, half a
 * surrogate pair, more than `maxDepth` levels.
 */
export function checkBody(body: unknown, maxDepth: number): void {
  check(body, "", maxDepth);
}

function check(value: unknown, path: string, depth: number): void {
  if (typeof value === "string") checkText(value, path);
  if (typeof value !== "object" || value === null) return;
  if (depth === 0) throw new InvalidRequest("the body is nested too deeply", topField(path));
  for (const [key, item] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    checkText(key, at);
    check(item, at, depth - 1);
  }
}

function checkText(text: string, path: string): void {
  if (text.includes("\0") || HALF_PAIR.test(text)) {
    throw new InvalidRequest("text may not contain NUL or half a surrogate pair", wellFormed(path));
  }
}

const topField = (path: string): string => wellFormed(path.split(".", 1)[0] ?? "");

/** A name that may itself be what is wrong, fit to be shown. */
const wellFormed = (path: string): string => path.replaceAll("\0", "").replace(HALF_PAIRS, "");
