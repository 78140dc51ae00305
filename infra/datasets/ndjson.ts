import { badRow, ColumnTypes, type TableFacts, type TableReader } from "./table";

const MAX_ROW_BYTES = 16 * 1024 * 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** One JSON object a line; empty lines are none. */
export class NdjsonReader implements TableReader {
  private readonly types = new ColumnTypes();
  private rest: Buffer[] = [];
  private restBytes = 0;
  private line = 0;
  private numRows = 0;

  push(chunk: Buffer): void {
    let start = 0;
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, start)) {
      this.read(Buffer.concat([...this.rest, chunk.subarray(start, at)]));
      this.rest = [];
      this.restBytes = 0;
      start = at + 1;
    }
    this.rest.push(chunk.subarray(start));
    this.restBytes += chunk.length - start;
    if (this.restBytes > MAX_ROW_BYTES) {
      throw badRow(this.line + 1, `is longer than ${MAX_ROW_BYTES} bytes`);
    }
  }

  end(): TableFacts {
    this.read(Buffer.concat(this.rest));
    return { numRows: this.numRows, columns: this.types.toColumns() };
  }

  private read(bytes: Buffer): void {
    this.line += 1;
    const row = parse(bytes, this.line);
    if (row === undefined) return;
    this.numRows += 1;
    for (const [name, value] of Object.entries(row)) {
      this.types.see(name, dtypeOf(value), this.line);
    }
  }
}

function parse(bytes: Buffer, line: number): object | undefined {
  let row: unknown;
  try {
    const text = utf8.decode(bytes).trim();
    if (text === "") return undefined;
    row = JSON.parse(text);
  } catch {
    throw badRow(line, "is not JSON in UTF-8");
  }
  if (typeof row === "object" && row !== null && !Array.isArray(row)) return row;
  throw badRow(line, "is not a JSON object");
}

function dtypeOf(value: unknown): string {
  switch (typeof value) {
    case "string":
      return "string";
    case "boolean":
      return "bool";
    case "number":
      return Number.isInteger(value) ? "int64" : "double";
    default:
      if (value === null) return "null";
      return Array.isArray(value) ? "list" : "struct";
  }
}
