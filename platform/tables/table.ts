import type { ColumnType } from "./column-type";

export interface TableColumn extends ColumnType {
  name: string;
  /** How SQL names it. */
  sql: string;
}

/**
 * A file as SQL reads it. Column names are a user's, so no statement has any: the columns are c0, c1, …
 * by their place, also where two names differ by nothing but case, which SQL would take for one.
 */
export interface Table {
  numRows: number;
  /** Their types are those of all rows; "null" where no row has a value. */
  columns: TableColumn[];
  /** A FROM clause that has these of the columns; its parameter $1 is the file. */
  from(columns: TableColumn[]): string;
}

/**
 * Each value of a statement takes some ten kilobytes for each thread, however few rows there are: a wide
 * table is read in several passes.
 */
const AT_ONCE = 50;

/** The columns by as many as are read in one pass. */
export function passesOver<Column>(columns: Column[]): Column[][] {
  const count = Math.ceil(columns.length / AT_ONCE);
  return Array.from({ length: count }, (_, n) => columns.slice(n * AT_ONCE, (n + 1) * AT_ONCE));
}

/** c0, c1, … */
const placeOf = (index: number): string => `c${index}`;

/** For an alias of so many columns. */
export const places = (count: number): string =>
  Array.from({ length: count }, (_, index) => placeOf(index)).join(", ");

export function columnsOf(names: string[], types: ColumnType[]): TableColumn[] {
  return types.map((type, index) => ({ ...type, name: names[index] ?? "", sql: placeOf(index) }));
}

/** A file that is read, but is not the table that it should be. */
export class NotATable extends Error {
  /** @param row where it goes wrong; the first row is 1, a header counts. */
  constructor(
    message: string,
    readonly row?: number,
  ) {
    super(message);
  }
}
