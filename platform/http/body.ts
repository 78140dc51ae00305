import { type JSONPath, visit } from "jsonc-parser";
import { ForgeError, InvalidRequest } from "../../core/errors";

/** With the u flag, a whole pair is one code point and no surrogate. */
const HALF_PAIR = /\p{Surrogate}/u;
const HALF_PAIRS = /\p{Surrogate}/gu;

/** Of any form, so many are read in some 30 ms. */
const MAX_VALUES = 150_000;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a JSON body, and refuses what JSON allows and nobody means: one name twice in an object,
 * `__proto__`, more than `maxDepth` levels, and text that Postgres can't hold (NUL, half a surrogate
 * pair). Each refusal names the field.
 */
export function parseJsonBody(bytes: Buffer, maxDepth: number): unknown {
  if (bytes.length === 0) return undefined;
  if (countValues(bytes) > MAX_VALUES) {
    throw new InvalidRequest(`the body has more than ${MAX_VALUES} values`);
  }
  let text: string;
  let value: unknown;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw new ForgeError(400, "malformed_json", "the body is not valid JSON in UTF-8");
  }
  if (!isPlain(text, value, maxDepth)) refuseOddities(text, maxDepth);
  return value;
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [...'"\\,[{'].map((sign) => sign.charCodeAt(0));

/** At least as many as there are in JSON: before each but the first is one of these signs, outside of texts. */
function countValues(bytes: Buffer): number {
  let count = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) isText = !isText;
    else if (isText && byte === BACKSLASH) at++;
    else if (!isText && (byte === COMMA || byte === BRACKET || byte === BRACE)) count++;
  }
  return count;
}

/**
 * True for a body that has none of the oddities for sure, as most have none: told at a fraction of the
 * cost of reading it again. Without a backslash no text holds a quote, NUL or half a pair, and a quote
 * before a colon ends a name: as many names as members means that none is there twice.
 */
function isPlain(text: string, value: unknown, maxDepth: number): boolean {
  if (text.includes("\\")) return false;
  return countMembers(value, maxDepth) === (text.match(/"\s*:/g)?.length ?? 0);
}

/** Members of all objects in a value; NaN where there is something odd. */
function countMembers(value: unknown, levels: number): number {
  if (typeof value === "number") return Number.isFinite(value) ? 0 : Number.NaN;
  if (typeof value !== "object" || value === null) return 0;
  if (levels === 0) return Number.NaN;
  let count = 0;
  if (Array.isArray(value)) {
    for (const each of value) count += countMembers(each, levels - 1);
    return count;
  }
  if (Object.hasOwn(value, "__proto__")) return Number.NaN;
  for (const each of Object.values(value)) count += 1 + countMembers(each, levels - 1);
  return count;
}

type PathSupplier = () => JSONPath;

function refuseOddities(text: string, maxDepth: number): void {
  /** The names seen in each object that is open; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  const enter = (names: Set<string> | undefined, pathOf: PathSupplier): void => {
    if (open.length === maxDepth) {
      const [field] = pathOf();
      throw new InvalidRequest(`the body has more than ${maxDepth} levels`, `${field ?? ""}`);
    }
    open.push(names);
  };
  const leave = (): void => {
    open.pop();
  };
  visit(text, {
    onObjectBegin: (_offset, _length, _line, _character, pathOf) => enter(new Set(), pathOf),
    onArrayBegin: (_offset, _length, _line, _character, pathOf) => enter(undefined, pathOf),
    onObjectEnd: leave,
    onArrayEnd: leave,
    onObjectProperty: (name, _offset, _length, _line, _character, pathOf) => {
      const names = open.at(-1);
      const at = (): JSONPath => [...pathOf(), name];
      if (names?.has(name)) {
        throw new InvalidRequest(`"${nameOf(at())}" is there twice`, nameOf(at()));
      }
      if (name === "__proto__") throw new InvalidRequest(`"${name}" is no field`, nameOf(at()));
      checkText(name, at);
      names?.add(name);
    },
    onLiteralValue: (value, _offset, _length, _line, _character, pathOf) => {
      if (typeof value === "string") checkText(value, pathOf);
      // 1e999 is a number to JSON, and Infinity to everybody who reads it.
      if (typeof value === "number" && !Number.isFinite(value)) {
        throw new InvalidRequest("the number is too large", nameOf(pathOf()));
      }
    },
  });
}

function checkText(text: string, pathOf: PathSupplier): void {
  if (isStorable(text)) return;
  throw new InvalidRequest("text may not contain NUL or half a surrogate pair", nameOf(pathOf()));
}

/** False for text that Postgres can't hold. */
export const isStorable = (text: string): boolean => !text.includes("\0") && !HALF_PAIR.test(text);

/** A name that may itself be what is wrong, fit to be shown. */
const nameOf = (path: JSONPath): string =>
  path.join(".").replaceAll("\0", "").replace(HALF_PAIRS, "");
