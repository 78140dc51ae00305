import type { MeasuredTable } from "../../core/artifacts/manifest";
import type { Measured } from "../store/object-store";
import { columnFault } from "./facts";
import { tableFormat } from "./table-format";
import type { StoredTable, Tables } from "./tables";
import { Unreadable } from "./unreadable";

/** The names of a dataset's table (spec.md 2.6). */
const NAMED = /^(raw|scored|sft)\.[a-z]+$/;

/**
 * Returns the files of an artifact's table. If a file has a specified name (NAMED), it is the only
 * one. Otherwise all files with the format of the first table file are the table's shards.
 */
export function tableFilesOf<T extends { path: string }>(files: T[]): T[] {
  const tables = files.filter(({ path }) => tableFormat(path));
  const named = tables.find(({ path }) => NAMED.test(path));
  if (named) return [named];
  const format = tableFormat(tables[0]?.path ?? "");
  return tables.filter(({ path }) => tableFormat(path) === format);
}

/**
 * Longest reading time of an artifact's files together. After that, the remaining files are
 * skipped, and the job's bill may lack their rows. The bill is never corrected, so this limit
 * excludes time in which the files wait for the reader process.
 */
const MAX_MS = 60 * 60_000;

interface ArtifactFile extends Measured {
  path: string;
}

/**
 * Counts the rows of an artifact's table and names its columns; null if it has no table. Unreadable
 * files are listed and don't fail the call.
 */
export async function measureArtifact(
  tables: Pick<Tables, "measure">,
  { tenant, prefix, files }: { tenant: string; prefix: string; files: ArtifactFile[] },
  signal: AbortSignal,
): Promise<MeasuredTable | null> {
  const parts = tableFilesOf(files);
  if (parts.length === 0) return null;
  const columns = new Map<string, string>();
  const unreadable: MeasuredTable["unreadable"] = [];
  let numRows = 0;
  let readMs = 0;
  const onRead = (ms: number): void => {
    readMs += ms;
  };
  for (const [place, { path, sizeBytes: size_bytes, sha256 }] of parts.entries()) {
    const format = tableFormat(path);
    if (!format) continue;
    if (readMs > MAX_MS) {
      const why = `the files before it took more than ${MAX_MS / 60_000} minutes`;
      unreadable.push({ path, why });
      continue;
    }
    try {
      const file = { tenant, key: `${prefix}${path}`, format, size_bytes, sha256 };
      const table: StoredTable = { ...file, part: { folder: prefix, place } };
      const facts = await tables.measure(table, signal, onRead);
      const names = new Set([...columns.keys(), ...facts.columns.map(({ name }) => name)]);
      const fault = columnFault([...names]);
      if (fault) throw new Unreadable(`the table ${fault}`);
      numRows += facts.numRows;
      for (const { name, dtype } of facts.columns) {
        const known = columns.get(name);
        columns.set(name, known === undefined || known === dtype ? dtype : "mixed");
      }
    } catch (error) {
      // An invalid file stays invalid. Any other error, such as an unavailable store, is transient.
      if (!(error instanceof Unreadable)) throw error;
      unreadable.push({ path, why: error.message });
    }
  }
  return {
    numRows,
    columns: [...columns].map(([name, dtype]) => ({ name, dtype })),
    unreadable,
    isRead: unreadable.length < parts.length,
  };
}
