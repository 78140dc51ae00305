import { cellOf, cellSql } from "./cells";
import { withTable } from "./open-table";
import type { TablePreview } from "./protocol";
import { query, type Session } from "./session";
import { measure } from "./statistics";
import { columnBatches, type Table } from "./table";
import type { TableFormat } from "./table-format";

const FIRST_ROWS = 50;
const MAX_ANSWER_BYTES = 1024 * 1024;

/** The first rows of a file, and statistics of all rows. Throws what `withTable` throws. */
export const previewTable = (path: string, format: TableFormat): Promise<TablePreview> =>
  withTable(path, format, preview);

async function preview(session: Session, table: Table): Promise<TablePreview> {
  const { numRows } = table;
  const columns = await measure(session, table);
  const found: unknown[][] = [];
  for (const some of columnBatches(table.columns)) {
    const cells = some.map(({ kind, sql }) => cellSql(kind, sql));
    const rows = await query(
      session,
      `select ${cells.join(", ")} from ${table.from(some)} limit ${FIRST_ROWS}`,
    );
    for (const [n, values] of rows.entries()) found[n] = [...(found[n] ?? []), ...values];
  }
  const left = MAX_ANSWER_BYTES - Buffer.byteLength(JSON.stringify(columns));
  return { num_rows: numRows, columns, ...firstRows(table, found, left) };
}

/** Returns the first rows, as many as fit into `maxBytes` of JSON. */
function firstRows({ columns }: Table, found: unknown[][], maxBytes: number) {
  const rows: TablePreview["rows"] = [];
  let left = maxBytes;
  for (const values of found) {
    // `fromEntries` instead of assignment: a column may be named __proto__.
    const row = Object.fromEntries(
      columns.map(({ name, kind }, index) => [name, cellOf(kind, values[index])]),
    );
    left -= Buffer.byteLength(JSON.stringify(row)) + 1;
    if (left < 0) return { rows, truncated: true };
    rows.push(row);
  }
  return { rows, truncated: false };
}
