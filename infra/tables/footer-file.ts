import { randomUUID } from "node:crypto";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { arrayBuffer } from "node:stream/consumers";
import type { ObjectStore } from "../store/object-store";
import { footerBytes, PARQUET_TAIL_BYTES } from "./parquet-footer";
import { NotATable } from "./table";
import { Unreadable } from "./unreadable";

interface ParquetFile {
  key: string;
  size_bytes: number;
}

/**
 * Works with a file that has a stored parquet file's size and footer, and holes where its rows are.
 *
 * @throws Unreadable for one whose end is not parquet's.
 */
export async function withFooter<Result>(
  store: ObjectStore,
  { key, size_bytes: size }: ParquetFile,
  directory: string,
  work: (path: string) => Promise<Result>,
): Promise<Result> {
  const bytesFrom = async (start: number): Promise<Buffer> =>
    Buffer.from(await arrayBuffer(store.read(key, { start, end: size - 1 })));
  const footer = await bytesFrom(
    size - footerLength(await bytesFrom(Math.max(0, size - PARQUET_TAIL_BYTES)), size),
  );
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `${randomUUID()}.part`);
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.write("PAR1", 0);
      await file.write(footer, 0, footer.length, size - footer.length);
    } finally {
      await file.close();
    }
    return await work(path);
  } finally {
    await rm(path, { force: true });
  }
}

function footerLength(tail: Buffer, size: number): number {
  try {
    return footerBytes(tail, size);
  } catch (error) {
    if (error instanceof NotATable)
      throw new Unreadable(`the file can't be read as parquet: ${error.message}`);
    throw error;
  }
}
