import type { TableFormat } from "../datasets/table-format";
import { cellOf, cellSql } from "./cells";
import { openCsv } from "./csv-table";
import { openJsonl } from "./jsonl-table";
import { openParquet } from "./parquet-table";
import type { TablePreview } from "./protocol";
import { openSession, query, type Session } from "./session";
import { measure } from "./statistics";
import { type Care, passesOver, type Table } from "./table";

const FIRST_ROWS = 50;
const MAX_ANSWER_BYTES = 1024 * 1024;

const QUICK: Care = { maxRowBytes: 2 * 1024 * 1024, readsAll: false };
/** A row may be as long as one that may be uploaded. */
const CAREFUL: Care = { maxRowBytes: 16 * 1024 * 1024, readsAll: true };

/** The first rows of a file, and statistics of all. Throws what the database says of it. */
export async function readTable(path: string, format: TableFormat): Promise<TablePreview> {
  const session = await openSession(path);
  try {
    if (format === "parquet") return await preview(session, await openParquet(session));
    const open = format === "csv" ? openCsv : openJsonl;
    try {
      return await preview(session, await open(session, QUICK));
    } catch {
      return await preview(session, await open(session, CAREFUL));
    }
  } finally {
    session.close();
  }
}

async function preview(session: Session, table: Table): Promise<TablePreview> {
  const { numRows, columns } = await measure(session, table);
  const found: unknown[][] = [];
  for (const some of passesOver(table.columns)) {
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

/** As many rows as may be shown in so many bytes of JSON. */
function firstRows({ columns }: Table, found: unknown[][], maxBytes: number) {
  const rows: TablePreview["rows"] = [];
  let left = maxBytes;
  for (const values of found) {
    // Not by assignment: a column may be named __proto__.
    const row = Object.fromEntries(
      columns.map(({ name, kind }, index) => [name, cellOf(kind, values[index])]),
    );
    left -= Buffer.byteLength(JSON.stringify(row)) + 1;
    if (left < 0) return { rows, truncated: true };
    rows.push(row);
  }
  return { rows, truncated: false };
}
