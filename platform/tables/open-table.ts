import { explainCsv, openCsv } from "./csv-table";
import { explainJsonl, openJsonl } from "./jsonl-table";
import { openParquet } from "./parquet-table";
import { openSession, type Session } from "./session";
import { NotATable, type Table } from "./table";
import type { TableFormat } from "./table-format";

/**
 * The longest row, first for most files and then for those that have a longer one: the database takes
 * several times as much for each thread.
 */
const QUICK_ROW_BYTES = 2 * 1024 * 1024;
const MAX_ROW_BYTES = 16 * 1024 * 1024;

/**
 * Works with a file as a table.
 *
 * @param path absolute.
 * @throws NotATable for one that is none; else what the database says of it.
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
      return await work(session, await open(session, QUICK_ROW_BYTES));
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
  // Where a line is no text at all, the reader of lines says so as it does of CSV.
  const found = explainJsonl(session, MAX_ROW_BYTES).catch((why: unknown) =>
    explainCsv(String(why)),
  );
  return (await found) ?? error;
}
