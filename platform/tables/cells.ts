import type { ColumnKind } from "./column-type";

const MAX_TEXT = 2_000;
/** The longest JSON of a list or struct. Longer JSON is shown as text, cut to MAX_TEXT. */
const MAX_JSON = 20_000;
const CUT = "… [cut]";

/** The SQL expression that selects a column's cells, limited to the length that can be shown. */
export function cellSql(kind: ColumnKind, sql: string): string {
  switch (kind) {
    case "string":
      return `left(${sql}::varchar, ${MAX_TEXT + 1})`;
    case "nested":
      return `left(to_json(${sql})::varchar, ${MAX_JSON + 1})`;
    case "binary":
      return `octet_length(${sql})`;
    case "integer":
    case "bool":
      return sql;
    case "float":
      // Cast via the number's shortest text: 0.1 as a float must not become 0.10000000149011612.
      return `${sql}::varchar::double`;
    default:
      return `${sql}::varchar`;
  }
}

/** Converts a value selected by `cellSql` to JSON, with texts of at most `maxText` characters. */
export function cellOf(kind: ColumnKind, value: unknown, maxText = MAX_TEXT): unknown {
  if (value === null || value === undefined) return null;
  switch (kind) {
    case "integer":
      return numberOrText(value);
    case "float":
      return finite(value);
    case "bool":
      return value === true;
    case "binary":
      return { bytes: Number(value) };
    case "decimal":
      return decimal(String(value));
    case "nested":
      return nested(String(value));
    case "ordered":
      return isoTime(String(value));
    default:
      return shortened(String(value), maxText);
  }
}

/** Cuts a text to this many characters, and marks the cut. */
function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length).join("")}${CUT}`;
}

/** A number if JavaScript can hold it exactly, else its digits as text. */
function numberOrText(value: unknown): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** JSON has neither NaN nor infinities. */
export function finite(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

const EXACT_DIGITS = 15;

function decimal(text: string): number | string {
  const isExact = text.replaceAll(/\D/g, "").replace(/^0+/, "").length <= EXACT_DIGITS;
  return isExact ? Number(text) : text;
}

/**
 * Converts an SQL time to ISO 8601, without a zone if it has none. Leaves other texts unchanged.
 */
function isoTime(text: string): string {
  const time = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)(\+00)?$/.exec(text);
  return time ? `${time[1]}T${time[2]}${time[3] ? "Z" : ""}` : text;
}

function nested(text: string): unknown {
  if (text.length > MAX_JSON) return shortened(text, MAX_TEXT);
  try {
    return shortenedWithin(JSON.parse(withoutUnsafeNumbers(text)));
  } catch {
    return shortened(text, MAX_TEXT);
  }
}

/** Converts unsafe integers to strings, and NaN and infinities to null. Strings are unchanged. */
function withoutUnsafeNumbers(json: string): string {
  return json.replaceAll(
    /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|nan|Infinity|inf)\b|-?(?<!\d)\d{16,}(?![\d.eE])/g,
    (token) => {
      if (token.startsWith('"')) return token;
      if (/[a-z]/i.test(token)) return "null";
      return Number.isSafeInteger(Number(token)) ? token : `"${token}"`;
    },
  );
}

function shortenedWithin(value: unknown): unknown {
  if (typeof value === "string") return shortened(value, MAX_TEXT);
  if (Array.isArray(value)) return value.map(shortenedWithin);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, shortenedWithin(of)]));
}
