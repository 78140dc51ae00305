import { type JSONPath, visit } from "jsonc-parser";
import { ForgeError, InvalidRequest } from "../../core/errors";

/** Half a surrogate pair. With the u flag, a complete pair is one code point and does not match. */
const HALF_PAIR = /\p{Surrogate}/u;
const HALF_PAIRS = /\p{Surrogate}/gu;

/**
 * Maximum number of JSON values in a body. The number is limited because parsing blocks the
 * process. Parsing an array with this many elements takes about 10 ms. A body of the largest size
 * with many short object members takes about 40 ms.
 */
const MAX_VALUES = 150_000;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a JSON body. Refuses valid JSON that is a mistake or can't be stored: duplicate names in
 * an object, `__proto__`, more than `maxDepth` levels, and values that Postgres can't hold (NUL,
 * half a surrogate pair, numbers such as 1e999). Each error names the field.
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
  if (!isPlain(text, value, maxDepth)) refuseFaults(text, maxDepth);
  return value;
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [...'"\\,[{'].map((sign) => sign.charCodeAt(0));

/**
 * Counts the values approximately, without parsing: outside of strings, a comma or an opening
 * bracket precedes each value except the first.
 */
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
 * A cheap check: true only if the body certainly has none of the faults that `refuseFaults` finds.
 * In valid JSON, NUL and half surrogate pairs need a backslash. To find duplicate names, compares
 * two counts: the quotes before a colon in the text, one for each member, and the members of the
 * parsed value. The second count is smaller if a name is given twice, because JSON.parse then keeps
 * only one of the members.
 */
function isPlain(text: string, value: unknown, maxDepth: number): boolean {
  if (text.includes("\\")) return false;
  return countMembers(value, maxDepth) === (text.match(/"\s*:/g)?.length ?? 0);
}

/**
 * Counts the members of all objects in a value. Returns NaN if the value has a number that is too
 * large, too many levels, or `__proto__`.
 */
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

function refuseFaults(text: string, maxDepth: number): void {
  /** The names seen in each open object; undefined for an open array. */
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
        throw new InvalidRequest(`"${nameOf(at())}" is given twice`, nameOf(at()));
      }
      if (name === "__proto__") {
        throw new InvalidRequest(`"${name}" is not allowed as a name`, nameOf(at()));
      }
      checkText(name, at);
      names?.add(name);
    },
    onLiteralValue: (value, _offset, _length, _line, _character, pathOf) => {
      if (typeof value === "string") checkText(value, pathOf);
      // 1e999 is valid JSON, but parsers read it as Infinity.
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

/**
 * Returns a field's path for an error message. Removes NUL and half surrogate pairs, because the
 * name of a field may contain them, too.
 */
const nameOf = (path: JSONPath): string =>
  path.join(".").replaceAll("\0", "").replace(HALF_PAIRS, "");
