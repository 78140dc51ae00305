import { NotATable } from "./table";

/** Number of bytes at the end of a file that hold the footer's length and the magic bytes. */
export const PARQUET_TAIL_BYTES = 8;
export const PARQUET_MAGIC = "PAR1";
/** The size of the smallest file: the magic bytes at the start, and the tail. */
export const MIN_PARQUET_BYTES = PARQUET_MAGIC.length + PARQUET_TAIL_BYTES;
/** Maximum size of a footer, which is held in memory. Usual footers are far smaller. */
const MAX_FOOTER_BYTES = 64 * 1024 * 1024;

/** The length of a footer with its tail. @throws NotATable if there is none, or it is too long. */
export function requireFooter(tail: Buffer, sizeBytes: number): number {
  if (sizeBytes < MIN_PARQUET_BYTES || tail.toString("latin1", 4) !== PARQUET_MAGIC) {
    throw new NotATable("it does not end like a parquet file");
  }
  const length = tail.readUInt32LE(0);
  if (length > sizeBytes - MIN_PARQUET_BYTES)
    throw new NotATable("its parquet footer is longer than the file");
  if (length > MAX_FOOTER_BYTES) {
    throw new NotATable(`its parquet footer is longer than ${MAX_FOOTER_BYTES} bytes`);
  }
  return length + PARQUET_TAIL_BYTES;
}
