import { ForgeError, InvalidRequest } from "../../core/errors";
import type { ObjectStore, SizeAndChecksum } from "../store/object-store";
import type { TableFacts } from "./facts";
import { PARQUET_MAGIC } from "./parquet-footer";
import type { TableFormat } from "./table-format";
import type { Tables } from "./tables";
import { Unreadable } from "./unreadable";

/** Formats of uploaded datasets by content type. The format is also the file's extension. */
const FORMATS: Record<string, TableFormat> = {
  "application/vnd.apache.parquet": "parquet",
  "application/x-ndjson": "jsonl",
  "text/csv": "csv",
};

export const DATASET_CONTENT_TYPES = Object.keys(FORMATS);

export interface IngestedFile extends SizeAndChecksum, TableFacts {
  path: string;
}

interface Upload {
  tenant: string;
  /** Key prefix in the store. */
  prefix: string;
  contentType: string;
  body: AsyncIterable<Buffer>;
  /** SHA-256 in hex; undefined: the client sent none. */
  checksum: string | undefined;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
}

/**
 * Stores an uploaded table below a prefix, then measures its rows, columns, size and checksum. An
 * invalid file, or one that does not match the checksum, is removed.
 */
export async function ingest(
  store: ObjectStore,
  tables: Tables,
  { tenant, prefix, contentType, body, checksum, signal }: Upload,
): Promise<IngestedFile> {
  const format = FORMATS[contentType];
  if (!format) throw new Error(`no format for ${contentType}`);
  const path = `raw.${format}`;
  const key = `${prefix}${path}`;
  try {
    const checked = format === "parquet" ? requireParquetStart(body) : body;
    const file = await store.putStream(key, checked);
    requireChecksum(checksum, file.sha256);
    const { sizeBytes: size_bytes, sha256 } = file;
    const facts = await tables.measure({ tenant, key, format, size_bytes, sha256 }, signal);
    if (facts.numRows === 0) throw new InvalidRequest("the file has no rows", "body");
    return { path, ...file, ...facts };
  } catch (error) {
    // Report the original error. If the removal fails, the sweeper removes the file.
    await store.remove(key).catch(() => undefined);
    if (!(error instanceof Unreadable)) throw error;
    const { message, row } = error;
    throw new InvalidRequest(message, "body", row === undefined ? undefined : { row });
  }
}

/** Fails early for a file that is not parquet, before the rest is sent. */
async function* requireParquetStart(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let beginning = "";
  for await (const chunk of body) {
    if (beginning.length < PARQUET_MAGIC.length) {
      beginning += chunk.toString("latin1", 0, PARQUET_MAGIC.length - beginning.length);
      if (!PARQUET_MAGIC.startsWith(beginning)) throw new InvalidRequest(NO_PARQUET, "body");
    }
    yield chunk;
  }
}

const NO_PARQUET = "the file does not begin like a parquet file";

function requireChecksum(expected: string | undefined, actual: string): void {
  if (expected === undefined || expected.toLowerCase() === actual) return;
  const message = `the body's SHA-256 is ${actual}, not the one in the header`;
  throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
}
