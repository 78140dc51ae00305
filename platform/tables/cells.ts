import type { ColumnKind } from "./column-type";

const MAX_TEXT = 2_000;
/** Lists and structs of longer text are shown as text, cut like any other. */
const MAX_JSON = 20_000;
const CUT = "… [cut]";

/** How SQL hands out a column's cells: nothing longer than what can be shown. */
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
      // The shortest text that is the number: 0.1 as a float is no 0.10000000149011612.
      return `${sql}::varchar::double`;
    default:
      return `${sql}::varchar`;
  }
}

/** What SQL handed out, as JSON can say it. */
export function cellOf(kind: ColumnKind, value: unknown): unknown {
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
      return shortened(String(value), MAX_TEXT);
  }
}

/** A text of at most so many characters; one that was longer says so. */
export function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length).join("")}${CUT}`;
}

/** A number where JSON's readers hold it exactly, else its digits. */
export function numberOrText(value: unknown): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** NaN and the infinities are no numbers of JSON's. */
export function finite(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

const EXACT_DIGITS = 15;

export function decimal(text: string): number | string {
  const isExact = text.replaceAll(/\D/g, "").replace(/^0+/, "").length <= EXACT_DIGITS;
  return isExact ? Number(text) : text;
}

/** SQL's time as ISO 8601 has it; one without a zone stays without. Other texts stay as they are. */
export function isoTime(text: string): string {
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

/** Strings stay; integers that a number can't hold become strings, and NaN and the infinities null. */
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
