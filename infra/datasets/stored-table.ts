import { ForgeError } from "../../core/errors";
import type { MeasuredTable } from "../../core/manifest";
import type { ObjectStore, StoredObject } from "../store/object-store";
import { lettingGo } from "../streamed-memory";
import { CsvReader } from "./csv";
import { NdjsonReader } from "./ndjson";
import { readParquetFacts } from "./parquet";
import { requireColumns, type TableFacts, type TableReader } from "./table";
import { type TableFormat, tableFormat } from "./table-format";

/** Reads a file's rows as its bytes come by. None for parquet, whose footer says all. */
export function rowReaderOf(format: TableFormat): TableReader | undefined {
  switch (format) {
    case "jsonl":
      return new NdjsonReader();
    case "csv":
      return new CsvReader();
    case "parquet":
      return undefined;
  }
}

/** The names that spec.md 2.6 gives a dataset's table. */
const NAMED = /^(raw|scored|sft)\.[a-z]+$/;

/**
 * The files that are an artifact's table: the one of the specification's name; where there is none, all
 * of the first table's format, as shards are.
 */
export function tableFilesOf<T extends { path: string }>(files: T[]): T[] {
  const tables = files.filter(({ path }) => tableFormat(path));
  const named = tables.find(({ path }) => NAMED.test(path));
  if (named) return [named];
  const format = tableFormat(tables[0]?.path ?? "");
  return tables.filter(({ path }) => tableFormat(path) === format);
}

/** Counts the rows of an artifact's table and names its columns; null where it has none. */
export async function measureTable(
  store: ObjectStore,
  prefix: string,
  files: StoredObject[],
  signal: AbortSignal,
): Promise<MeasuredTable | null> {
  const tables = tableFilesOf(files);
  if (tables.length === 0) return null;
  const columns = new Map<string, string>();
  const measured: MeasuredTable = { numRows: 0, columns: [], unreadable: [] };
  for (const { path, sizeBytes } of tables) {
    try {
      const facts = await readTable(store, `${prefix}${path}`, sizeBytes, signal);
      const names = new Set([...columns.keys(), ...facts.columns.map(({ name }) => name)]);
      requireColumns([...names]);
      measured.numRows += facts.numRows;
      for (const { name, dtype } of facts.columns) {
        const known = columns.get(name);
        columns.set(name, known === undefined || known === dtype ? dtype : "mixed");
      }
    } catch (error) {
      // A file that is wrong stays wrong; a store that is away comes back.
      if (!(error instanceof ForgeError)) throw error;
      measured.unreadable.push({ path, why: error.message });
    }
  }
  if (measured.unreadable.length === tables.length) return { ...measured, numRows: 0 };
  return { ...measured, columns: [...columns].map(([name, dtype]) => ({ name, dtype })) };
}

async function readTable(
  store: ObjectStore,
  key: string,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<TableFacts> {
  const format = tableFormat(key);
  const reader = format && rowReaderOf(format);
  if (!reader) return await readParquetFacts(store, key, sizeBytes);
  if (sizeBytes > 0) {
    for await (const chunk of lettingGo(store.read(key))) {
      signal.throwIfAborted();
      await reader.push(chunk);
    }
  }
  return await reader.end();
}
