/**
 * SQL conditions on text columns. The argument `text` is the placeholder of a parameter. The
 * conditions do not use LIKE, because wildcards in the parameter's value would need escaping.
 */

export const startsWith = (column: string, text: string): string =>
  `starts_with(${column}, ${text}::text)`;

/** Case-insensitive. */
export const contains = (column: string, text: string): string =>
  `position(lower(${text}::text) in lower(${column})) > 0`;

export const anyContains = (arrayColumn: string, text: string): string =>
  `exists (select from unnest(${arrayColumn}) as one where ${contains("one", text)})`;

/** True if at least one condition is true. */
export const either = (...conditions: string[]): string => `(${conditions.join(" or ")})`;
