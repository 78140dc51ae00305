import { explainCsv, openCsv } from "./csv-table";
import { explainJsonl, openJsonl } from "./jsonl-table";
import { openParquet } from "./parquet-table";
import { openSession, type Session } from "./session";
import { NotATable, type Table } from "./table";
import type { TableFormat } from "./table-format";

/**
 * Two limits for the size of a row. A file is first opened with SMALL_ROW_BYTES, because DuckDB
 * allocates several times the limit per thread. If that fails, MAX_ROW_BYTES is tried.
 */
const SMALL_ROW_BYTES = 2 * 1024 * 1024;
const MAX_ROW_BYTES = 16 * 1024 * 1024;

/**
 * Opens a file as a table, runs `work`, and closes it.
 *
 * @param path absolute.
 * @throws NotATable for an invalid file; otherwise DuckDB's error.
 */
export async function withTable<Result>(
  path: string,
  format: TableFormat,
  work: (session: Session, table: Table) => Promise<Result>,
): Promise<Result> {
  const session = await openSession(path);
  try {
    if (format === "parquet") return await work(session, await openParquet(session));
    const open = format === "csv" ? openCsv : openJsonl;
    try {
      return await work(session, await open(session, SMALL_ROW_BYTES));
    } catch (error) {
      if (error instanceof NotATable) throw error;
      return await work(session, await open(session, MAX_ROW_BYTES));
    }
  } catch (error) {
    throw await explain(error, format, session);
  } finally {
    session.close();
  }
}

async function explain(error: unknown, format: TableFormat, session: Session): Promise<unknown> {
  if (error instanceof NotATable || format === "parquet") return error;
  if (format === "csv") return explainCsv(String(error)) ?? error;
  // explainJsonl reads the lines with DuckDB's CSV reader, which throws a CSV error if a line is
  // not UTF-8.
  const found = explainJsonl(session, MAX_ROW_BYTES).catch((why: unknown) =>
    explainCsv(String(why)),
  );
  return (await found) ?? error;
}
