import { ForgeError, InvalidRequest } from "../../core/errors";
import type { Measured, ObjectStore } from "../store/object-store";
import type { TableFacts } from "./facts";
import { PARQUET_MAGIC } from "./parquet-footer";
import type { TableFormat } from "./table-format";
import type { Tables } from "./tables";
import { Unreadable } from "./unreadable";

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

interface Upload {
  /** Whose it is. */
  tenant: string;
  /** Where it goes. */
  prefix: string;
  contentType: string;
  body: AsyncIterable<Buffer>;
  /** In hex; undefined: the client sent none. */
  checksum: string | undefined;
  /** Its client is gone. */
  signal: AbortSignal;
}

/**
 * Stores an uploaded table below a prefix, then measures it: rows, columns, size, checksum. One that is
 * wrong, or not the one that the checksum is of, leaves nothing.
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
    const file = await store.putStream(key, format === "parquet" ? beginsAsParquet(body) : body);
    requireChecksum(checksum, file.sha256);
    const { sizeBytes: size_bytes, sha256 } = file;
    const facts = await tables.measure({ tenant, key, format, size_bytes, sha256 }, signal);
    if (facts.numRows === 0) throw new InvalidRequest("the file has no rows", "body");
    return { path, ...file, ...facts };
  } catch (error) {
    // What is wrong with the file is what counts; the sweeper removes what stays.
    await store.remove(key).catch(() => undefined);
    if (!(error instanceof Unreadable)) throw error;
    const { message, row } = error;
    throw new InvalidRequest(message, "body", row === undefined ? undefined : { row });
  }
}

/** The rest of a file that is of another kind need not be sent. */
async function* beginsAsParquet(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let beginning = "";
  for await (const chunk of body) {
    if (beginning.length < PARQUET_MAGIC.length) {
      beginning += chunk.toString("latin1", 0, PARQUET_MAGIC.length - beginning.length);
      if (!PARQUET_MAGIC.startsWith(beginning)) throw new InvalidRequest(NO_PARQUET, "body");
    }
    yield chunk;
  }
}

const NO_PARQUET = "the file does not begin as parquet does";

function requireChecksum(expected: string | undefined, actual: string): void {
  if (expected === undefined || expected.toLowerCase() === actual) return;
  const message = `the body's SHA-256 is ${actual}`;
  throw new ForgeError(400, "checksum_mismatch", message, "X-Checksum-Sha256");
}
