/** Conditions on text columns. `text` is a parameter; LIKE is not used, for its wildcards need escaping. */

export const startsWith = (column: string, text: string): string =>
  `starts_with(${column}, ${text}::text)`;

/** Regardless of case. */
export const contains = (column: string, text: string): string =>
  `position(lower(${text}::text) in lower(${column})) > 0`;

export const anyContains = (arrayColumn: string, text: string): string =>
  `exists (select from unnest(${arrayColumn}) as one where ${contains("one", text)})`;

/** At least one of these conditions. */
export const either = (...conditions: string[]): string => `(${conditions.join(" or ")})`;
