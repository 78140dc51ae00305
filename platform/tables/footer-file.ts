import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { arrayBuffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { ObjectStore } from "../store/object-store";
import {
  MIN_PARQUET_BYTES,
  PARQUET_MAGIC,
  PARQUET_TAIL_BYTES,
  requireFooter,
} from "./parquet-footer";
import { NotATable } from "./table";
import { Unreadable } from "./unreadable";

interface ParquetFile {
  key: string;
  size_bytes: number;
}

/**
 * Runs `work` with a sparse local copy of a stored parquet file. The copy has the file's size and
 * footer, but no rows.
 *
 * @throws Unreadable if the file does not end like parquet.
 */
export async function withFooter<Result>(
  store: ObjectStore,
  { key, size_bytes: size }: ParquetFile,
  directory: string,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  if (size < MIN_PARQUET_BYTES)
    throw new Unreadable("the file can't be read as parquet: it is too short");
  const range = { start: size - PARQUET_TAIL_BYTES, end: size - 1 };
  const tail = Buffer.from(await arrayBuffer(store.read(key, range)));
  const start = size - footerLength(tail, size);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `${randomUUID()}.part`);
  try {
    await writeFile(path, PARQUET_MAGIC, { flag: "wx", mode: 0o600 });
    const footer = store.read(key, { start, end: size - 1 });
    await pipeline(footer, createWriteStream(path, { flags: "r+", start }));
    return await work(path);
  } finally {
    await rm(path, { force: true });
  }
}

function footerLength(tail: Buffer, size: number): number {
  try {
    return requireFooter(tail, size);
  } catch (error) {
    if (error instanceof NotATable)
      throw new Unreadable(`the file can't be read as parquet: ${error.message}`);
    throw error;
  }
}
