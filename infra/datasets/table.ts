import { InvalidRequest } from "../../core/errors";

export interface Column {
  name: string;
  /** In Arrow's words: string, int64, double, bool, …; "mixed" where the rows differ. */
  dtype: string;
}

/** What was measured of a table. */
export interface TableFacts {
  numRows: number;
  columns: Column[];
}

/** Reads a table as its bytes come by. Throws InvalidRequest at the first row that is wrong. */
export interface TableReader {
  push(chunk: Buffer): Promise<void> | void;
  end(): Promise<TableFacts> | TableFacts;
}

/** The refusal of a file, with the row where it fails; the first row is 1, a header counts. */
export function badRow(row: number, what: string): InvalidRequest {
  return new InvalidRequest(`row ${row} ${what}`, "body", { row });
}

/** The types seen in each column, in the order in which the columns appeared. */
export class ColumnTypes {
  private readonly types = new Map<string, string>();

  see(name: string, dtype: string): void {
    const known = this.types.get(name);
    if (known === undefined || known !== dtype) this.types.set(name, joined(known, dtype));
  }

  get size(): number {
    return this.types.size;
  }

  toColumns(): Column[] {
    return [...this.types].map(([name, dtype]) => ({ name, dtype }));
  }
}

function joined(known: string | undefined, dtype: string): string {
  if (known === undefined || known === "null") return dtype;
  if (dtype === "null" || dtype === known) return known;
  const areNumbers = [known, dtype].every((type) => type === "int64" || type === "double");
  return areNumbers ? "double" : "mixed";
}
