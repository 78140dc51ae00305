import type { ColumnType } from "./column-type";
import { columnProblem, MAX_COLUMNS } from "./facts";
import { SEEN, seenType } from "./seen-type";
import { query, quoted, type Session } from "./session";
import { columnBatches, columnsOf, NotATable, type Table } from "./table";

const FIRST_ROWS = 50;
const MAX_SHOWN_BYTES = 256 * 1024;

/**
 * Opens a file of JSON lines. Names and types are inferred from all rows, because later rows may
 * have fields that the first rows lack. `from` extracts the values of all its columns with one
 * list of JSON pointers. With one call per column, DuckDB would parse each row once per column.
 */
export async function openJsonl(session: Session, maxRowBytes: number): Promise<Table> {
  const rows = session.read(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    ? `(select line::json as json from ${linesOf(maxRowBytes)} where trim(line) <> '')`
    : `read_ndjson_objects($1, compression = 'uncompressed', maximum_object_size = ${maxRowBytes})`;
  const numRows = await countOf(session, rows);
  const names = await namesOf(session, rows);
  const types: ColumnType[] = [];
  for (const some of columnBatches(names)) types.push(...(await typesOf(session, rows, some)));
  return {
    numRows,
    columns: columnsOf(names, types),
    from(columns) {
      const pointers = pointersTo(columns.map(({ name }) => name));
      const values = columns.map(
        (column, index) => `${castOf(column, index + 1)} as ${column.sql}`,
      );
      const parts =
        `select json_extract_string(json, ${pointers}) as texts, ` +
        `json_extract(json, ${pointers}) as parts from ${rows}`;
      return `(select ${values.join(", ")} from (${parts}))`;
    },
  };
}

/** Reads each line as one text: only line ends are special. */
const linesOf = (maxRowBytes: number): string =>
  "read_csv($1, auto_detect = false, header = false, columns = {'line': 'VARCHAR'}, delim = '\x01', " +
  "quote = '', escape = '', comment = '', nullstr = '', compression = 'none', strict_mode = false, " +
  `hive_partitioning = false, max_line_size = ${maxRowBytes}, buffer_size = ${2 * maxRowBytes})`;

/** Programs on Windows begin a file with this mark, which DuckDB's JSON reader refuses. */
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

async function countOf(session: Session, rows: string): Promise<number> {
  const [[numRows, objects] = []] = await query(
    session,
    `select count(*), count(*) filter (where json_type(json) = 'OBJECT') from ${rows}`,
  );
  if (numRows !== objects) throw new Error("a row is not an object");
  return Number(numRows);
}

/**
 * Finds the first invalid row, if any. DuckDB's own errors count rows from the start of a block,
 * not from the start of the file.
 */
export async function explainJsonl(
  session: Session,
  maxRowBytes: number,
): Promise<NotATable | undefined> {
  const [[notJson = null, notObject = null] = []] = await query(
    session,
    "select min(n) filter (where type = ''), min(n) filter (where type <> '' and type <> 'OBJECT') " +
      "from (select n, case when json_valid(line) then json_type(line) else '' end as type " +
      `from (select row_number() over () as n, line from ${linesOf(maxRowBytes)}) where trim(line) <> '')`,
  );
  const rowOf = (n: unknown): number => (n === null ? Number.POSITIVE_INFINITY : Number(n));
  const row = Math.min(rowOf(notJson), rowOf(notObject));
  if (!Number.isFinite(row)) return undefined;
  const what = row === rowOf(notJson) ? "is not JSON in UTF-8" : "is not a JSON object";
  return new NotATable(`row ${row} ${what}`, row);
}

function pointersTo(names: string[]): string {
  const pointers = names.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  return `[${pointers.map(quoted).join(", ")}]`;
}

/** All column names: first the names in the first rows, in their order; then the others, sorted. */
async function namesOf(session: Session, rows: string): Promise<string[]> {
  const keys = await query(
    session,
    `select distinct unnest(json_keys(json)) from ${rows} limit ${MAX_COLUMNS + 1}`,
  );
  const fault = columnProblem(keys.map(([key]) => String(key)));
  if (fault) throw new NotATable(`it ${fault}`);
  const first = await query(
    session,
    `select unnest(json_keys(json)) from (select json from ${rows} limit ${FIRST_ROWS}) ` +
      `where strlen(json) <= ${MAX_SHOWN_BYTES}`,
  );
  const later = keys.map(([key]) => String(key)).sort();
  return [...new Set([...first.map(([key]) => String(key)), ...later])];
}

async function typesOf(session: Session, rows: string, names: string[]): Promise<ColumnType[]> {
  const seen = names.map((_, index) => `bit_or(${seenOf(`types[${index + 1}]`)})`);
  const types = `select json_type(json, ${pointersTo(names)}) as types from ${rows}`;
  const [row = []] = await query(session, `select ${seen.join(", ")} from (${types})`);
  return row.map((bits) => seenType(Number(bits), MIXED));
}

/** The type of a column whose values have different types. Its values are shown as JSON. */
const MIXED: ColumnType = { dtype: "mixed", kind: "nested" };

const seenOf = (type: string): string =>
  `case ${type} when 'VARCHAR' then ${SEEN.string} when 'DOUBLE' then ${SEEN.double} ` +
  `when 'UBIGINT' then ${SEEN.int64} when 'BIGINT' then ${SEEN.int64} when 'HUGEINT' then ${SEEN.int64} ` +
  `when 'BOOLEAN' then ${SEEN.bool} when 'ARRAY' then ${SEEN.list} when 'OBJECT' then ${SEEN.struct} ` +
  "else 0 end";

/** The SQL expression of a column's value. @param at 1-based index. */
function castOf({ kind }: ColumnType, at: number): string {
  switch (kind) {
    case "integer":
      return `try_cast(texts[${at}] as hugeint)`;
    case "float":
      return `try_cast(texts[${at}] as double)`;
    case "bool":
      return `try_cast(texts[${at}] as boolean)`;
    case "nested":
      // Turn JSON's null into SQL's null.
      return `case when texts[${at}] is not null then parts[${at}] end`;
    default:
      return `texts[${at}]`;
  }
}
