import type { TableFormat } from "../../platform/tables/table-format";

/** The content type to upload each table format with. */
export const CONTENT_TYPES: Record<TableFormat, string> = {
  parquet: "application/vnd.apache.parquet",
  jsonl: "application/x-ndjson",
  csv: "text/csv",
};
