const FORMATS = { parquet: "parquet", jsonl: "jsonl", ndjson: "jsonl", csv: "csv" } as const;

/** What a table can be stored as. */
export type TableFormat = (typeof FORMATS)[keyof typeof FORMATS];

/** By the extension of a file's name; undefined: the file is no table. */
export function tableFormat(path: string): TableFormat | undefined {
  const extension = /\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(FORMATS, extension) ? FORMATS[extension as keyof typeof FORMATS] : undefined;
}
