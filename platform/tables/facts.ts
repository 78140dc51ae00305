import { isStorable } from "../http/body";

interface Column {
  name: string;
  /** In Arrow's words: string, int64, double, bool, …; "mixed" where the rows differ. */
  dtype: string;
}

/** What was measured of a table. */
export interface TableFacts {
  numRows: number;
  columns: Column[];
}

/** A manifest names every column, so there is an end to them. */
export const MAX_COLUMNS = 2_000;
const MAX_NAME_LENGTH = 256;

/** What keeps a manifest from naming these columns, if anything does. */
export function columnFault(names: string[]): string | undefined {
  if (names.length > MAX_COLUMNS) return `has more than ${MAX_COLUMNS} columns`;
  if (names.some((name) => name.length > MAX_NAME_LENGTH)) {
    return `has a column whose name is longer than ${MAX_NAME_LENGTH} characters`;
  }
  if (!names.every(isStorable)) return "has a column whose name holds NUL or half a surrogate pair";
  return undefined;
}
