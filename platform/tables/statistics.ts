import { cellOf, finite } from "./cells";
import type { ColumnStatistics } from "./protocol";
import { query, type Session } from "./session";
import { columnBatches, type Table, type TableColumn } from "./table";

type Field = Exclude<keyof ColumnStatistics, "name" | "dtype" | "null_count">;

const MAX_TEXT = 256;
/** Replaces MAX_TEXT in tables with more than MANY_COLUMNS columns, to keep the preview small. */
const SHORT_TEXT = 16;
const MANY_COLUMNS = 200;

/** Computes each column's statistics over all rows. */
export async function measure(session: Session, table: Table): Promise<ColumnStatistics[]> {
  const maxText = table.columns.length > MANY_COLUMNS ? SHORT_TEXT : MAX_TEXT;
  const columns: ColumnStatistics[] = [];
  for (const some of columnBatches(table.columns)) {
    const found = await aggregate(session, table, some);
    const statistics = some.map((of, n) =>
      statisticsOf(of, table.numRows, found[n] ?? {}, maxText),
    );
    columns.push(...statistics);
  }
  return columns;
}

/**
 * Aggregates the given columns in one pass. If the standard deviation of one column overflows, a
 * second pass computes the aggregates again, without any standard deviation.
 */
async function aggregate(
  session: Session,
  table: Table,
  columns: TableColumn[],
  withStandardDeviation = true,
): Promise<Record<string, unknown>[]> {
  const wanted = columns.map((column) => aggregatesOf(column, withStandardDeviation));
  const list = wanted.flatMap((of) => Object.values(of));
  const sql = `select ${list.join(", ")} from ${table.from(columns)}`;
  try {
    const [row = []] = await query(session, sql);
    let at = 0;
    return wanted.map((of) =>
      Object.fromEntries(Object.keys(of).map((name) => [name, row[at++] ?? null])),
    );
  } catch (error) {
    if (!withStandardDeviation || !String(error).includes("out of range")) throw error;
    return await aggregate(session, table, columns, false);
  }
}

type Aggregates = { count: string } & Partial<Record<Field, string>>;

function aggregatesOf({ kind, sql }: TableColumn, withSpread: boolean): Aggregates {
  const count = `count(${sql})`;
  const approx_distinct = `approx_count_distinct(${sql})`;
  const spread = (of: string) => (withSpread ? { stddev: `stddev_samp(${of}::double)` } : {});
  switch (kind) {
    case "integer":
    case "decimal": {
      const shown = kind === "integer" ? "" : "::varchar";
      return {
        count,
        min: `min(${sql})${shown}`,
        max: `max(${sql})${shown}`,
        mean: `avg(${sql})::double`,
        ...spread(sql),
        approx_distinct,
      };
    }
    case "float": {
      const number = `case when isfinite(${sql}) then ${sql} end`;
      return {
        count,
        min: `min(${number})::varchar::double`,
        max: `max(${number})::varchar::double`,
        mean: `avg(${number})`,
        ...spread(number),
        approx_distinct,
      };
    }
    case "bool":
      return {
        count,
        min: `min(${sql})`,
        max: `max(${sql})`,
        mean: `avg(${sql}::int)`,
        approx_distinct,
      };
    case "string":
      return {
        count,
        min: `left(min(${sql})::varchar, ${MAX_TEXT + 1})`,
        max: `left(max(${sql})::varchar, ${MAX_TEXT + 1})`,
        approx_distinct,
        min_length: `min(length(${sql}::varchar))`,
        max_length: `max(length(${sql}::varchar))`,
        mean_length: `avg(length(${sql}::varchar))`,
      };
    case "ordered":
      return { count, min: `min(${sql})::varchar`, max: `max(${sql})::varchar`, approx_distinct };
    default:
      return { count };
  }
}

function statisticsOf(
  { name, dtype, kind }: TableColumn,
  numRows: number,
  found: Record<string, unknown>,
  maxText: number,
): ColumnStatistics {
  const present = Number(found.count);
  // DuckDB estimates the distinct count, so the count may exceed the number of non-null values.
  const distinct = found.approx_distinct;
  return {
    name,
    dtype,
    null_count: numRows - present,
    min: cellOf(kind, found.min, maxText) as ColumnStatistics["min"],
    max: cellOf(kind, found.max, maxText) as ColumnStatistics["max"],
    mean: finite(found.mean),
    stddev: finite(found.stddev),
    approx_distinct: distinct === undefined ? null : Math.min(Number(distinct), present),
    ...(kind === "string"
      ? {
          min_length: lengthOf(found.min_length),
          max_length: lengthOf(found.max_length),
          mean_length: finite(found.mean_length),
        }
      : {}),
  };
}

const lengthOf = (value: unknown): number | null =>
  value === null || value === undefined ? null : Number(value);
