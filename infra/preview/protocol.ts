import type { TableFormat } from "../datasets/table-format";

/** What the server asks of the preview process, one at a time. */
export interface PreviewRequest {
  id: number;
  /** Absolute path of a file of this machine's. */
  path: string;
  format: TableFormat;
}

/**
 * Its answer: a TablePreview as JSON, or why there is none, in words for the file's owner; and what the
 * process takes by now.
 */
export type PreviewAnswer = { id: number; rssBytes: number } & (
  | { preview: string }
  | { failure: string }
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
