import type { ColumnType } from "./column-type";

export interface TableColumn extends ColumnType {
  name: string;
  /** The column's name in SQL. */
  sql: string;
}

/**
 * A file that SQL statements can read. Users choose the column names, so the statements never use
 * them as identifiers: SQL names the columns c0, c1, … by index. The index also distinguishes
 * columns whose names differ only by case.
 */
export interface Table {
  numRows: number;
  /**
   * A column's type fits the values of all rows, not only of a sample. It is "null" if no row has a
   * value.
   */
  columns: TableColumn[];
  /** A FROM clause that provides these columns. Its parameter $1 is the file. */
  from(columns: TableColumn[]): string;
}

/**
 * Maximum number of columns per pass. A wide table is read in several passes, because each
 * expression in a SELECT takes about ten kilobytes of memory per thread, even for a few rows.
 */
const AT_ONCE = 50;

/** Splits columns into batches that are read in one pass each. */
export function columnBatches<Column>(columns: Column[]): Column[][] {
  const count = Math.ceil(columns.length / AT_ONCE);
  return Array.from({ length: count }, (_, n) => columns.slice(n * AT_ONCE, (n + 1) * AT_ONCE));
}

/** c0, c1, … */
const indexName = (index: number): string => `c${index}`;

/** The column list of an SQL table alias: "c0, c1, …" for this many columns. */
export const indexNames = (count: number): string =>
  Array.from({ length: count }, (_, index) => indexName(index)).join(", ");

export function columnsOf(names: string[], types: ColumnType[]): TableColumn[] {
  return types.map((type, index) => ({ ...type, name: names[index] ?? "", sql: indexName(index) }));
}

/** The file can be read, but is not a valid table. */
export class NotATable extends Error {
  /** @param row the invalid row's number, starting at 1. A header counts as a row. */
  constructor(
    message: string,
    readonly row?: number,
  ) {
    super(message);
  }
}
