import type { ColumnType } from "./column-type";

/** Bit flags for the types seen in a column of a text format. No flag: the column has no values. */
export const SEEN = { string: 1, double: 2, int64: 4, bool: 8, list: 16, struct: 32 };

/**
 * The type of a column in which these types were seen.
 * @param mixed returned if several types were seen. Exception: int64 and double together make a
 * double column.
 */
export const seenType = (bits: number, mixed: ColumnType): ColumnType => TYPES[bits] ?? mixed;

const TYPES: Record<number, ColumnType> = {
  0: { dtype: "null", kind: "other" },
  [SEEN.string]: { dtype: "string", kind: "string" },
  [SEEN.int64]: { dtype: "int64", kind: "integer" },
  [SEEN.double]: { dtype: "double", kind: "float" },
  [SEEN.double | SEEN.int64]: { dtype: "double", kind: "float" },
  [SEEN.bool]: { dtype: "bool", kind: "bool" },
  [SEEN.list]: { dtype: "list", kind: "nested" },
  [SEEN.struct]: { dtype: "struct", kind: "nested" },
};
