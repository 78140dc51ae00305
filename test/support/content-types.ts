import type { TableFormat } from "../../platform/tables/table-format";

/** What a table of each format is uploaded as. */
export const CONTENT_TYPES: Record<TableFormat, string> = {
  parquet: "application/vnd.apache.parquet",
  jsonl: "application/x-ndjson",
  csv: "text/csv",
};
