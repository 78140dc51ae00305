import { isStorable } from "../http/body";

interface Column {
  name: string;
  /** Arrow's type name: string, int64, double, bool, …; "mixed" if the rows differ. */
  dtype: string;
}

/** Row count and columns of a table. */
export interface TableFacts {
  numRows: number;
  columns: Column[];
}

/** Maximum number of columns of a table. Limited because a manifest names every column. */
export const MAX_COLUMNS = 2_000;
const MAX_NAME_LENGTH = 256;

/** Returns why a manifest can't contain these column names, or undefined if it can. */
export function columnProblem(names: string[]): string | undefined {
  if (names.length > MAX_COLUMNS) return `has more than ${MAX_COLUMNS} columns`;
  if (names.some((name) => name.length > MAX_NAME_LENGTH)) {
    return `has a column whose name is longer than ${MAX_NAME_LENGTH} characters`;
  }
  if (!names.every(isStorable)) return "has a column whose name holds NUL or half a surrogate pair";
  return undefined;
}
