const FORMATS = { parquet: "parquet", jsonl: "jsonl", ndjson: "jsonl", csv: "csv" } as const;

/** File format of a stored table. */
export type TableFormat = (typeof FORMATS)[keyof typeof FORMATS];

/** Returns the format for the file's extension, or undefined if the file is not a table. */
export function tableFormat(path: string): TableFormat | undefined {
  const extension = /\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(FORMATS, extension) ? FORMATS[extension as keyof typeof FORMATS] : undefined;
}
