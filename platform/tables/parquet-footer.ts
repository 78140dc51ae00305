import { NotATable } from "./table";

/** The last bytes of a file: the footer's length, and what every such file begins and ends with. */
export const PARQUET_TAIL_BYTES = 8;
export const PARQUET_MAGIC = "PAR1";
/** What it begins with, and its tail. */
export const MIN_PARQUET_BYTES = PARQUET_MAGIC.length + PARQUET_TAIL_BYTES;
/** The footer of an honest file is far smaller; it is held in memory. */
const MAX_FOOTER_BYTES = 64 * 1024 * 1024;

/**
 * The length of a file's footer, tail included.
 *
 * @throws NotATable for a file that is no parquet, or has a footer that it can't have.
 */
export function requireFooter(tail: Buffer, sizeBytes: number): number {
  if (sizeBytes < MIN_PARQUET_BYTES || tail.toString("latin1", 4) !== PARQUET_MAGIC) {
    throw new NotATable("it does not end as parquet does");
  }
  const length = tail.readUInt32LE(0);
  if (length > sizeBytes - MIN_PARQUET_BYTES)
    throw new NotATable("its parquet footer is longer than the file");
  if (length > MAX_FOOTER_BYTES) {
    throw new NotATable(`its parquet footer is longer than ${MAX_FOOTER_BYTES} bytes`);
  }
  return length + PARQUET_TAIL_BYTES;
}
