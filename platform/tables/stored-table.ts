import type { MeasuredTable } from "../../core/artifacts/manifest";
import type { Measured } from "../store/object-store";
import { columnFault } from "./facts";
import { tableFormat } from "./table-format";
import type { StoredTable, Tables } from "./tables";
import { Unreadable } from "./unreadable";

/** The names that spec.md 2.6 gives a dataset's table. */
const NAMED = /^(raw|scored|sft)\.[a-z]+$/;

/**
 * The files that are an artifact's table: the one of the specification's name; where there is none, all
 * of the first table's format, as shards are.
 */
export function tableFilesOf<T extends { path: string }>(files: T[]): T[] {
  const tables = files.filter(({ path }) => tableFormat(path));
  const named = tables.find(({ path }) => NAMED.test(path));
  if (named) return [named];
  const format = tableFormat(tables[0]?.path ?? "");
  return tables.filter(({ path }) => tableFormat(path) === format);
}

/** For all files of an artifact: what is not read by then stays unread. */
const MAX_MS = 60 * 60_000;

/** A file of an artifact's. */
interface ArtifactFile extends Measured {
  path: string;
}

/**
 * Counts the rows of an artifact's table and names its columns; null where it has none. Files that can't
 * be read are noted, and keep nobody up.
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
  const began = performance.now();
  for (const { path, sizeBytes: size_bytes, sha256 } of parts) {
    const format = tableFormat(path);
    if (!format) continue;
    if (performance.now() - began > MAX_MS) {
      unreadable.push({
        path,
        why: `the files before it took more than ${MAX_MS / 60_000} minutes`,
      });
      continue;
    }
    try {
      const table: StoredTable = { tenant, key: `${prefix}${path}`, format, size_bytes, sha256 };
      const facts = await tables.measure(table, signal);
      const fault = columnFault([
        ...new Set([...columns.keys(), ...facts.columns.map(({ name }) => name)]),
      ]);
      if (fault) throw new Unreadable(`the table ${fault}`);
      numRows += facts.numRows;
      for (const { name, dtype } of facts.columns) {
        const known = columns.get(name);
        columns.set(name, known === undefined || known === dtype ? dtype : "mixed");
      }
    } catch (error) {
      // A file that is wrong stays wrong; a store that is away comes back.
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
