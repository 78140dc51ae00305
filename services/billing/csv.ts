import { stringify } from "csv-stringify/sync";

export type CsvValue = string | number | boolean | null;

/**
 * Rows as CSV (RFC 4180), header first. Text that a spreadsheet would read as a formula gets an
 * apostrophe as prefix.
 */
export function csvOf<Column extends string>(
  columns: readonly Column[],
  rows: Iterable<Readonly<Record<Column, CsvValue>>>,
  { header = true }: { header?: boolean } = {},
): string {
  return stringify([...rows], {
    header,
    columns: [...columns],
    escape_formulas: true,
    record_delimiter: "windows",
    cast: { boolean: String },
  });
}
