import type { ColumnType } from "./column-type";

/** What was seen in a column of a text format, as bits; none: no value. */
export const SEEN = { string: 1, double: 2, int64: 4, bool: 8, list: 16, struct: 32 };

/** @param differing the type of a column whose rows differ by more than whole numbers from others. */
export function seenType(bits: number, differing: ColumnType): ColumnType {
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
      return differing;
  }
}
