import { arrayBuffer, text } from "node:stream/consumers";
import type { SchemaElement } from "hyparquet";
import { InvalidRequest } from "../../core/errors";
import type { ObjectStore } from "../store/object-store";
import type { Column, TableFacts } from "./table";

const MAGIC = "PAR1";
/** A footer of an honest file is far smaller; it is held in memory. */
const MAX_FOOTER_BYTES = 64 * 1024 * 1024;

/** Reads the footer of a stored parquet file; the rows stay where they are. */
export async function readParquetFacts(
  store: ObjectStore,
  key: string,
  sizeBytes: number,
): Promise<TableFacts> {
  await requireFooter(store, key, sizeBytes);
  // hyparquet is an ES module only.
  const { parquetMetadataAsync } = await import("hyparquet");
  let away: unknown;
  const file = {
    byteLength: sizeBytes,
    slice: (start: number, end = sizeBytes) =>
      arrayBuffer(store.read(key, { start, end: end - 1 })).catch((error: unknown) => {
        away = error;
        throw error;
      }),
  };
  try {
    const { num_rows, schema } = await parquetMetadataAsync(file);
    return { numRows: Math.max(0, Number(num_rows)), columns: columnsOf(schema) };
  } catch {
    // The file is not to blame for a store that broke off.
    throw away ?? unreadable();
  }
}

async function requireFooter(store: ObjectStore, key: string, sizeBytes: number): Promise<void> {
  const isLongEnough = sizeBytes >= 3 * MAGIC.length;
  const head = isLongEnough ? await text(store.read(key, { start: 0, end: 3 })) : "";
  const tail = isLongEnough
    ? await arrayBuffer(store.read(key, { start: sizeBytes - 8, end: sizeBytes - 1 }))
    : undefined;
  if (!tail || head !== MAGIC || Buffer.from(tail).toString("latin1", 4) !== MAGIC) {
    throw new InvalidRequest("the file is not parquet", "body");
  }
  const length = new DataView(tail).getUint32(0, true);
  if (length > Math.min(MAX_FOOTER_BYTES, sizeBytes - 12)) {
    throw unreadable();
  }
}

const unreadable = (): InvalidRequest =>
  new InvalidRequest("the file's parquet footer can't be read", "body");

/**
 * The top level of the schema: the first element is the root, each names its children's number, and they
 * follow it. The numbers are the file's word, so what counts is the elements that are there.
 */
function columnsOf([root, ...elements]: SchemaElement[]): Column[] {
  const columns: Column[] = [];
  let at = 0;
  for (let column = 0; column < (root?.num_children ?? 0); column++) {
    const element = elements[at];
    if (!element) throw unreadable();
    columns.push({ name: element.name, dtype: dtypeOf(element) });
    for (let open = 1; open > 0; at++) {
      const next = elements[at];
      if (!next) throw unreadable();
      open += Math.max(0, next.num_children ?? 0) - 1;
    }
  }
  return columns;
}

function dtypeOf(element: SchemaElement): string {
  const logical = element.logical_type?.type ?? element.converted_type;
  if (element.num_children)
    return logical === "LIST" ? "list" : logical === "MAP" ? "map" : "struct";
  if (logical === "STRING" || logical === "UTF8") return "string";
  if (logical !== undefined && logical !== "INTEGER") return logical.toLowerCase();
  return PHYSICAL[element.type ?? ""] ?? "binary";
}

const PHYSICAL: Record<string, string> = {
  BOOLEAN: "bool",
  INT32: "int32",
  INT64: "int64",
  INT96: "timestamp",
  FLOAT: "float",
  DOUBLE: "double",
};
