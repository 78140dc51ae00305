import type { ColumnType } from "./column-type";

/** Bit flags for the types seen in a column of a text format. No flag: the column has no values. */
export const SEEN = { string: 1, double: 2, int64: 4, bool: 8, list: 16, struct: 32 };

/** @param mixed the type of a column with several types, other than integers and decimals. */
export function seenType(bits: number, mixed: ColumnType): ColumnType {
  switch (bits) {
    case 0:
      return { dtype: "null", kind: "other" };
    case SEEN.string:
      return { dtype: "string", kind: "string" };
    case SEEN.int64:
      return { dtype: "int64", kind: "integer" };
    case SEEN.double:
    case SEEN.double | SEEN.int64:
      return { dtype: "double", kind: "float" };
    case SEEN.bool:
      return { dtype: "bool", kind: "bool" };
    case SEEN.list:
      return { dtype: "list", kind: "nested" };
    case SEEN.struct:
      return { dtype: "struct", kind: "nested" };
    default:
      return mixed;
  }
}
