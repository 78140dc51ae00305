import type { TableFormat } from "./table-format";

/** A request to the process that reads tables. The process handles one request at a time. */
export interface TableRequest {
  id: number;
  /** "measure" returns TableFacts, "preview" returns a TablePreview. */
  work: "measure" | "preview";
  /** Absolute path of a local file. */
  path: string;
  format: TableFormat;
}

/**
 * The answer has one of three fields:
 * - `result`: the result as JSON.
 * - `failure`: an error message for the file's owner. `row` is set if a row is at fault.
 * - `interruption`: an error of the machine. It says nothing about the file.
 *
 * `rssBytes` is the current memory of the process.
 */
export type TableAnswer = { id: number; rssBytes: number } & (
  | { result: string }
  | { failure: string; row?: number }
  | { interruption: string }
);

/** The process sends this once, before any answer, when it is ready to read files. */
export const READER_STARTED = "started";

/** The process ends itself with this signal when it has used more memory than is allowed. */
export const OVER_MEMORY: NodeJS.Signals = "SIGUSR2";

type Value = string | number | boolean | null;

/** Statistics of a column over all rows. Null: unknown, or without meaning for the type. */
export interface ColumnStatistics {
  name: string;
  /** Type name as in a manifest's schema. */
  dtype: string;
  null_count: number;
  min: Value;
  max: Value;
  mean: number | null;
  stddev: number | null;
  approx_distinct: number | null;
  /** In characters; for strings only. */
  min_length?: number | null;
  max_length?: number | null;
  mean_length?: number | null;
}

export interface TablePreview {
  num_rows: number;
  columns: ColumnStatistics[];
  /** The first rows, as values by column name. */
  rows: Record<string, unknown>[];
  /** Whether rows were left out because the preview would be too large. */
  truncated: boolean;
}
