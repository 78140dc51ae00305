import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { SessionFailed } from "./interruption";

const LIMITS = {
  threads: "2",
  // Enough for the rows that the threads hold at once (2,048 per thread), and for the buffers of
  // DuckDB's JSON reader (64 MB).
  memory_limit: "256MB",
  // Never spill to disk: a query that does not fit into memory fails.
  temp_directory: "",
  max_temp_directory_size: "0KB",
  autoinstall_known_extensions: "false",
  autoload_known_extensions: "false",
  allow_community_extensions: "false",
  enable_external_file_cache: "false",
};

/** An empty database that can read one file and nothing else. */
export interface Session {
  connection: DuckDBConnection;
  sizeBytes: number;
  /** Reads up to `length` bytes from an offset. */
  read(start: number, length: number): Buffer;
  /** The file's name in SQL, passed as a parameter of statements. */
  file: string;
  close(): void;
}

/**
 * Opens a file for SQL. SQL names the file by its descriptor, so that DuckDB never treats the path
 * as a pattern, and so that the file can't be replaced in the meantime. Then disables access to
 * other files, the network and extensions, and locks the configuration.
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
    throw new SessionFailed(String(error));
  }
}

/** Runs a statement with the file as its first parameter, and returns the rows. */
export async function query(
  { connection, file }: Session,
  sql: string,
  parameters: string[] = [],
): Promise<unknown[][]> {
  const reader = await connection.runAndReadAll(sql, [file, ...parameters]);
  return reader.getRows();
}

/** Quotes a text as an SQL literal. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
