import { columnType } from "./column-type";
import { query, type Session } from "./session";
import { type Care, columnsOf, places, type Table } from "./table";

/** CSV as it is uploaded: a header, commas, quotes as RFC 4180 has them. Nothing else is guessed. */
const DIALECT =
  "delim = ',', quote = '\"', escape = '\"', comment = '', skip = 0, nullstr = '', compression = 'none', " +
  "strict_mode = false, hive_partitioning = false";

/** The types that a manifest's schema knows of CSV. */
const TYPES = "auto_type_candidates = ['BOOLEAN', 'BIGINT', 'DOUBLE', 'VARCHAR']";

/**
 * Opens a CSV file. Its columns' types are those of its first rows; with care, of all of them, which takes
 * another pass.
 */
export async function openCsv(session: Session, care: Care): Promise<Table> {
  const dialect = `${DIALECT}, max_line_size = ${care.maxRowBytes}, buffer_size = ${2 * care.maxRowBytes}`;
  const sample = care.readsAll ? ", sample_size = -1" : "";
  const rows = `read_csv($1, header = true, ${dialect}, ${TYPES}${sample})`;
  const { connection, file } = session;
  const reader = await connection.runAndReadAll(`select * from ${rows} limit 0`, [file]);
  const types = reader.columnTypes().map(columnType);
  const names = await namesOf(session, dialect);
  const columns = columnsOf(names, types).map((column) => ({ ...column, emptyDtype: "null" }));
  return { columns, from: () => `${rows} as t(${places(types.length)})` };
}

/** The header as it is: read as a header, names that differ only by case would be changed. */
async function namesOf(session: Session, dialect: string): Promise<string[]> {
  const header = `read_csv($1, header = false, all_varchar = true, ${dialect})`;
  const [names = []] = await query(session, `select * from ${header} limit 1`);
  return names.map((name) => String(name ?? ""));
}
