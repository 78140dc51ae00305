import type { TableFormat } from "./table-format";

/** What the server asks of the process that reads tables, one at a time. */
export interface TableRequest {
  id: number;
  /** For TableFacts, or for a TablePreview. */
  work: "measure" | "preview";
  /** Absolute path of a file of this machine's. */
  path: string;
  format: TableFormat;
}

/**
 * Its answer: what the work left, as JSON, or why there is nothing, in words for the file's owner, with
 * the row, where one is to blame; and what the process takes by now.
 */
export type TableAnswer = { id: number; rssBytes: number } & (
  | { result: string }
  | { failure: string; row?: number }
);

type Value = string | number | boolean | null;

/** What was measured of a column, over all of its rows. Null: not known, or without meaning for its type. */
export interface ColumnStatistics {
  name: string;
  /** In the words of a manifest's schema. */
  dtype: string;
  null_count: number;
  min: Value;
  max: Value;
  mean: number | null;
  stddev: number | null;
  approx_distinct: number | null;
  /** In characters; of strings only. */
  min_length?: number | null;
  max_length?: number | null;
  mean_length?: number | null;
}

export interface TablePreview {
  num_rows: number;
  columns: ColumnStatistics[];
  /** The first ones, by column name. */
  rows: Record<string, unknown>[];
  /** True: rows were left out, for the answer would be too large. */
  truncated: boolean;
}
