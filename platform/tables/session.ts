import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";

const LIMITS = {
  threads: "2",
  // Each thread holds 2,048 rows at once, and the reader of JSON 64 MB beside them.
  memory_limit: "256MB",
  // Nothing is written to the disk: what does not fit into the memory fails.
  temp_directory: "",
  max_temp_directory_size: "0KB",
  autoinstall_known_extensions: "false",
  autoload_known_extensions: "false",
  allow_community_extensions: "false",
  enable_external_file_cache: "false",
};

/** A database of nothing, that can read one file and nothing else. */
export interface Session {
  connection: DuckDBConnection;
  sizeBytes: number;
  /** Bytes of the file from a place on, as many as there are. */
  read(start: number, length: number): Buffer;
  /** How SQL names the file; a parameter of its statements. */
  file: string;
  close(): void;
}

/**
 * Opens a file for SQL. It is named by its descriptor: no character of the file's own name is read as a
 * pattern, and nobody can put another file in its place meanwhile. Then all other files, the network and
 * extensions are closed off, for good: the settings can't be changed from there on.
 */
export async function openSession(path: string): Promise<Session> {
  const descriptor = openSync(path, "r");
  const file = `/dev/fd/${descriptor}`;
  try {
    const { size: sizeBytes } = fstatSync(descriptor);
    const instance = await DuckDBInstance.create(":memory:", LIMITS);
    const connection = await instance.connect();
    await connection.run(`set allowed_paths = ['${file}']`);
    await connection.run("set enable_external_access = false");
    await connection.run("set lock_configuration = true");
    return {
      connection,
      sizeBytes,
      read(start, length) {
        const bytes = Buffer.alloc(Math.min(length, Math.max(0, sizeBytes - start)));
        return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, start));
      },
      file,
      close() {
        connection.closeSync();
        instance.closeSync();
        closeSync(descriptor);
      },
    };
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** The rows of a statement whose first parameter is the file. */
export async function query(
  { connection, file }: Session,
  sql: string,
  parameters: string[] = [],
): Promise<unknown[][]> {
  const reader = await connection.runAndReadAll(sql, [file, ...parameters]);
  return reader.getRows();
}

/** A text as SQL's. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
