import { CsvError, parse } from "csv-parse/sync";
import type { ColumnType } from "./column-type";
import { MAX_COLUMNS } from "./facts";
import { SEEN, seenType } from "./seen-type";
import { query, quoted, type Session } from "./session";
import { columnsOf, NotATable, passesOver, type Table, type TableColumn } from "./table";

/** CSV as it is uploaded: a header, commas, quotes as RFC 4180 has them. Nothing else is guessed. */
const DIALECT =
  "auto_detect = false, delim = ',', quote = '\"', escape = '\"', comment = '', nullstr = '', " +
  "compression = 'none', strict_mode = true, hive_partitioning = false";

/** More than the longest header that a manifest could hold. */
const MAX_HEADER_BYTES = 4 * 1024 * 1024;

/** Opens a CSV file. Every row has as many fields as the header; a column's type is that of all its rows. */
export async function openCsv(session: Session, maxRowBytes: number): Promise<Table> {
  const { names, skip } = headerOf(session.read(0, MAX_HEADER_BYTES));
  const dialect = `${DIALECT}, max_line_size = ${maxRowBytes}, buffer_size = ${2 * maxRowBytes}`;
  const rowsAs = (columns: TableColumn[]): string => {
    const types = columns.map(
      ({ kind, sql }) => `${quoted(sql)}: ${quoted(SQL_TYPES[kind] ?? "VARCHAR")}`,
    );
    return `read_csv($1, header = false, skip = ${skip}, columns = {${types.join(", ")}}, ${dialect})`;
  };
  const texts = columnsOf(
    names,
    names.map(() => TEXT),
  );
  const types: ColumnType[] = [];
  let numRows = 0;
  for (const some of passesOver(texts)) {
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

/** The names as they are: where two differ only by case, SQL would change one. */
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

/** RE2's expressions, which take linear time. */
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

/** What the database says of a file, in words that name the row as its owner counts; undefined: nothing known. */
export function explainCsv(says: string): NotATable | undefined {
  if (says.includes("state machine reached an invalid state")) {
    return new NotATable(
      "it is not well-formed CSV: its lines end in more than one way, or a quote is open",
    );
  }
  const row = Number(/CSV Error on Line: (\d+)/.exec(says)?.[1]);
  if (!row) return undefined;
  const [, header, found] = /Expected Number of Columns: (\d+) Found: (\d+)/.exec(says) ?? [];
  if (found !== undefined) {
    const fields = found === "1" ? "1 field" : `${found} fields`;
    return new NotATable(`row ${row} has ${fields}, and the header ${header}`, row);
  }
  const fault = FAULTS.find(([words]) => says.includes(words))?.[1] ?? "is not well-formed CSV";
  return new NotATable(`row ${row} ${fault}`, row);
}

const FAULTS = [
  ["Invalid unicode", "is not UTF-8"],
  ["unterminated quote", "is not well-formed CSV: a quote is not closed, or text follows it"],
  ["Maximum line size", "is too long"],
] as const;
