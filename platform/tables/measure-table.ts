import { columnProblem, type TableFacts } from "./facts";
import { withTable } from "./open-table";
import { NotATable } from "./table";
import type { TableFormat } from "./table-format";

/**
 * Counts a file's rows and names its columns.
 *
 * @throws NotATable for an invalid file, or one whose columns a manifest can't name; otherwise
 *   DuckDB's error.
 */
export async function measureTable(path: string, format: TableFormat): Promise<TableFacts> {
  return await withTable(path, format, async (_session, { numRows, columns }) => {
    const names = columns.map(({ name }) => name);
    if (format === "csv" && (new Set(names).size !== names.length || names.includes(""))) {
      throw new NotATable("row 1 names a column twice, or not at all", 1);
    }
    const fault = columnProblem(names);
    if (fault) throw new NotATable(`it ${fault}`);
    return { numRows, columns: columns.map(({ name, dtype }) => ({ name, dtype })) };
  });
}
