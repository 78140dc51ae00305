import { CsvError, parse } from "csv-parse/sync";
import type { ColumnType } from "./column-type";
import { MAX_COLUMNS } from "./facts";
import { SEEN, seenType } from "./seen-type";
import { query, quoted, type Session } from "./session";
import { columnBatches, columnsOf, NotATable, type Table, type TableColumn } from "./table";

/** The accepted CSV dialect: a header, commas, quotes as in RFC 4180. Nothing is auto-detected. */
const DIALECT =
  "auto_detect = false, delim = ',', quote = '\"', escape = '\"', comment = '', nullstr = '', " +
  "compression = 'none', strict_mode = true, hive_partitioning = false";

/**
 * The header must end within this number of bytes. This is enough for the maximum number of columns
 * with names of maximum length (facts.ts).
 */
const MAX_HEADER_BYTES = 4 * 1024 * 1024;

/** Opens a CSV file. Rows must have as many fields as the header. Infers types from all rows. */
export async function openCsv(session: Session, maxRowBytes: number): Promise<Table> {
  const { names, skip } = headerOf(session.read(0, MAX_HEADER_BYTES));
  const dialect = `${DIALECT}, max_line_size = ${maxRowBytes}, buffer_size = ${2 * maxRowBytes}`;
  const rowsAs = (columns: TableColumn[]): string => {
    const types = columns.map(
      ({ kind, sql }) => `${quoted(sql)}: ${quoted(SQL_TYPES[kind] ?? "VARCHAR")}`,
    );
    return `read_csv($1, header = false, skip = ${skip}, columns = {${types.join(", ")}}, ${dialect})`;
  };
  const untyped = names.map(() => TEXT);
  const texts = columnsOf(names, untyped);
  const types: ColumnType[] = [];
  let numRows = 0;
  for (const some of columnBatches(texts)) {
    const seen = some.map(({ sql }) => `bit_or(${seenIn(sql)})`);
    const [row = []] = await query(
      session,
      `select count(*), ${seen.join(", ")} from ${rowsAs(texts)}`,
    );
    numRows = Number(row[0]);
    types.push(...row.slice(1).map((bits) => seenType(Number(bits), TEXT)));
  }
  const columns = columnsOf(names, types);
  const rows = rowsAs(columns);
  return { numRows, columns, from: () => rows };
}

/**
 * Reads the column names. Does not use SQL, which would rename one of two names that differ only by
 * case.
 */
function headerOf(beginning: Buffer): { names: string[]; skip: number } {
  const options = { bom: true, to: 1, skip_empty_lines: true, info: true } as const;
  try {
    const [header] = parse(beginning, options) as unknown as {
      record: string[];
      info: { empty_lines: number };
    }[];
    if (!header) throw new NotATable("it has no header");
    if (header.record.length > MAX_COLUMNS) {
      throw new NotATable(`it has more than ${MAX_COLUMNS} columns`);
    }
    return { names: header.record, skip: header.info.empty_lines + 1 };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new NotATable(`row 1 is not well-formed CSV: ${error.code}`, 1);
  }
}

/**
 * SQL expression: the type that a text looks like, as a flag of SEEN (seen-type.ts); 0 for null.
 * DuckDB's regular expressions (RE2) take linear time, so no value can make them slow.
 */
const seenIn = (sql: string): string =>
  `case when ${sql} is null then 0 ` +
  `when regexp_full_match(${sql}, '[+-]?[0-9]{1,18}') then ${SEEN.int64} ` +
  `when regexp_full_match(${sql}, '[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?') then ${SEEN.double} ` +
  `when lower(${sql}) in ('true', 'false') then ${SEEN.bool} else ${SEEN.string} end`;

const TEXT: ColumnType = { dtype: "string", kind: "string" };

const SQL_TYPES: Partial<Record<ColumnType["kind"], string>> = {
  integer: "BIGINT",
  float: "DOUBLE",
  bool: "BOOLEAN",
};

/** Translates a DuckDB error into a message that names the row. Undefined for an unknown error. */
export function explainCsv(message: string): NotATable | undefined {
  if (message.includes("state machine reached an invalid state")) {
    return new NotATable(
      "it is not well-formed CSV: it mixes line endings, or a quote is not closed",
    );
  }
  const row = Number(/CSV Error on Line: (\d+)/.exec(message)?.[1]);
  if (!row) return undefined;
  const [, header, found] = /Expected Number of Columns: (\d+) Found: (\d+)/.exec(message) ?? [];
  if (found !== undefined) {
    const fields = found === "1" ? "1 field" : `${found} fields`;
    return new NotATable(`row ${row} has ${fields}, and the header ${header}`, row);
  }
  const fault = FAULTS.find(([words]) => message.includes(words))?.[1] ?? "is not well-formed CSV";
  return new NotATable(`row ${row} ${fault}`, row);
}

const FAULTS = [
  ["Invalid unicode", "is not UTF-8"],
  ["unterminated quote", "is not well-formed CSV: a quote is not closed, or text follows it"],
  ["Maximum line size", "is too long"],
] as const;
