import type { MeasuredTable } from "../../core/artifacts/manifest";
import type { SizeAndChecksum } from "../store/object-store";
import { columnProblem } from "./facts";
import { tableFormat } from "./table-format";
import type { StoredTable, Tables } from "./tables";
import { Unreadable } from "./unreadable";

/** File names that spec.md 2.6 defines for the table of a dataset. */
const NAMED = /^(raw|scored|sft)\.[a-z]+$/;

/**
 * Returns the files that form an artifact's table. If a file has a name from the specification
 * (NAMED), the table is that file alone. Otherwise the table consists of all files that have the
 * same format as the first table file.
 */
export function tableFilesOf<T extends { path: string }>(files: T[]): T[] {
  const tables = files.filter(({ path }) => tableFormat(path));
  const named = tables.find(({ path }) => NAMED.test(path));
  if (named) return [named];
  const format = tableFormat(tables[0]?.path ?? "");
  return tables.filter(({ path }) => tableFormat(path) === format);
}

/**
 * Maximum total time to read the files of one artifact. After this time, the remaining files are
 * skipped, and the job's bill may lack their rows permanently. A long queue must not cause this, so
 * only the time in the reader process counts.
 */
const MAX_MS = 60 * 60_000;

interface ArtifactFile extends SizeAndChecksum {
  path: string;
}

/**
 * Counts the rows of an artifact's table and collects its columns. Returns null if the artifact has
 * no table. Unreadable files don't fail the call: the result lists them in `unreadable`.
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
      const fault = columnProblem([...names]);
      if (fault) throw new Unreadable(`the table ${fault}`);
      numRows += facts.numRows;
      for (const { name, dtype } of facts.columns) {
        const known = columns.get(name);
        columns.set(name, known === undefined || known === dtype ? dtype : "mixed");
      }
    } catch (error) {
      // Any other error, such as an unavailable store, is transient, so the caller can retry.
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
