import { ForgeError, InvalidRequest } from "../../core/errors";
import type { ObjectStore, StoredObject } from "../store/object-store";
import { CsvReader } from "./csv";
import { NdjsonReader } from "./ndjson";
import { readParquetFacts } from "./parquet";
import { columnFault, type TableFacts, type TableReader } from "./table";

interface Format {
  extension: string;
  /** Reads the rows as they pass; none: the file is looked at when it is there. */
  reader?: () => TableReader;
}

/** What a dataset may be uploaded as, by content type. */
const FORMATS: Record<string, Format> = {
  "application/vnd.apache.parquet": { extension: "parquet" },
  "application/x-ndjson": { extension: "jsonl", reader: () => new NdjsonReader() },
  "text/csv": { extension: "csv", reader: () => new CsvReader() },
};

export const DATASET_CONTENT_TYPES = Object.keys(FORMATS);

export interface IngestedFile extends StoredObject, TableFacts {}

/**
 * Stores an uploaded table below a prefix and measures it on the way: rows, columns, size, checksum.
 * One that is wrong, or not the one that the checksum (hex) is of, leaves nothing.
 */
export async function ingest(
  store: ObjectStore,
  prefix: string,
  contentType: string,
  body: AsyncIterable<Buffer>,
  checksum: string | undefined,
): Promise<IngestedFile> {
  const format = FORMATS[contentType];
  if (!format) throw new Error(`no format for ${contentType}`);
  const reader = format.reader?.();
  const path = `raw.${format.extension}`;
  const key = `${prefix}${path}`;
  let facts: TableFacts | undefined;
  try {
    const file = await store.putStream(
      key,
      readOnTheWay(body, reader, (read) => {
        facts = read;
      }),
    );
    facts ??= await readParquetFacts(store, key, file.sizeBytes);
    requireChecksum(checksum, file.sha256);
    requireColumns(facts);
    if (facts.numRows === 0) throw new InvalidRequest("the file has no rows", "body");
    return { path, ...file, ...facts };
  } catch (error) {
    await store.remove(key);
    throw error;
  }
}

async function* readOnTheWay(
  chunks: AsyncIterable<Buffer>,
  reader: TableReader | undefined,
  onRead: (facts: TableFacts) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    await reader?.push(chunk);
    yield chunk;
  }
  if (reader) onRead(await reader.end());
}

/** Once more for all: a parquet file's columns are not seen row by row. */
function requireColumns({ columns }: TableFacts): void {
  for (const { name } of columns) {
    const fault = columnFault(name, columns.length);
    if (fault) throw new InvalidRequest(`the file ${fault}`, "body");
  }
}

function requireChecksum(expected: string | undefined, actual: string): void {
  if (expected === undefined || expected.toLowerCase() === actual) return;
  const message = `the body's SHA-256 is ${actual}`;
  throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
}
