import { columnType } from "./column-type";
import { PARQUET_TAIL_BYTES, requireFooter } from "./parquet-footer";
import { query, type Session } from "./session";
import { columnsOf, indexNames, NotATable, type Table } from "./table";

const ROWS = "read_parquet($1, hive_partitioning = false)";

/** Opens a parquet file. Reads only the footer, not the rows. */
export async function openParquet(session: Session): Promise<Table> {
  const { connection, file, sizeBytes } = session;
  const tail = session.read(Math.max(0, sizeBytes - PARQUET_TAIL_BYTES), PARQUET_TAIL_BYTES);
  requireFooter(tail, sizeBytes);
  const reader = await connection.runAndReadAll(`select * from ${ROWS} limit 0`, [file]);
  const types = reader.columnTypes().map(columnType);
  const names = await namesOf(session);
  if (names.length !== types.length) throw new NotATable("its schema is inconsistent");
  const [[numRows] = []] = await query(
    session,
    "select sum(num_rows) from parquet_file_metadata($1)",
  );
  return {
    numRows: Math.max(0, Number(numRows)),
    columns: columnsOf(names, types),
    from: () => `${ROWS} as t(${indexNames(types.length)})`,
  };
}

/**
 * The names at the top level of the schema. Read from the metadata, because SQL renames one of two
 * names that differ only by case. The elements are in depth-first order: the first is the root, and
 * the children of each element follow it.
 */
async function namesOf(session: Session): Promise<string[]> {
  const elements = await query(
    session,
    "select name, coalesce(num_children, 0) from parquet_schema($1)",
  );
  const names: string[] = [];
  let open = 0;
  for (const [name, children] of elements.slice(1)) {
    if (open === 0) {
      names.push(String(name));
      open = 1;
    }
    open += Number(children) - 1;
  }
  return names;
}
