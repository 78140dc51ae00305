import { InvalidRequest } from "../../core/errors";
import { isStorable } from "../http/body";

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

/** A manifest names every column, so there is an end to them. */
const MAX_COLUMNS = 2_000;
const MAX_NAME_LENGTH = 256;

/** What is wrong with a table of these columns, if anything is. */
function columnFault(name: string, count: number): string | undefined {
  if (count > MAX_COLUMNS) return `has more than ${MAX_COLUMNS} columns`;
  if (name.length > MAX_NAME_LENGTH) return `has a name of more than ${MAX_NAME_LENGTH} characters`;
  if (!isStorable(name)) return "has a name with NUL or half a surrogate pair";
  return undefined;
}

/** @throws InvalidRequest for columns that a manifest can't name. */
export function requireColumns(names: string[]): void {
  for (const name of names) {
    const fault = columnFault(name, names.length);
    if (fault) throw new InvalidRequest(`the file ${fault}`, "body");
  }
}

/** The types seen in each column, in the order in which the columns appeared. */
export class ColumnTypes {
  private readonly types = new Map<string, string>();

  /** @param row where it was seen. */
  see(name: string, dtype: string, row: number): void {
    const known = this.types.get(name);
    const fault = known === undefined && columnFault(name, this.types.size + 1);
    if (fault) throw badRow(row, fault);
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
