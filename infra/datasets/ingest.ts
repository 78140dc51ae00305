import { ForgeError, InvalidRequest } from "../../core/errors";
import type { Measured, ObjectStore } from "../store/object-store";
import { readParquetFacts } from "./parquet";
import { rowReaderOf } from "./stored-table";
import { requireColumns, type TableFacts, type TableReader } from "./table";
import type { TableFormat } from "./table-format";

/** What a dataset may be uploaded as, by content type; the format is its file's extension too. */
const FORMATS: Record<string, TableFormat> = {
  "application/vnd.apache.parquet": "parquet",
  "application/x-ndjson": "jsonl",
  "text/csv": "csv",
};

export const DATASET_CONTENT_TYPES = Object.keys(FORMATS);

export interface IngestedFile extends Measured, TableFacts {
  path: string;
}

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
  const reader = rowReaderOf(format);
  const path = `raw.${format}`;
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
    // Once more for all: a parquet file's columns are not seen row by row.
    requireColumns(facts.columns.map(({ name }) => name));
    if (facts.numRows === 0) throw new InvalidRequest("the file has no rows", "body");
    return { path, ...file, ...facts };
  } catch (error) {
    // What is wrong with the file is what counts; the sweeper removes what stays.
    await store.remove(key).catch(() => undefined);
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

function requireChecksum(expected: string | undefined, actual: string): void {
  if (expected === undefined || expected.toLowerCase() === actual) return;
  const message = `the body's SHA-256 is ${actual}`;
  throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
}
