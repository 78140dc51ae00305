import { once } from "node:events";
import { CsvError, type Parser, parse } from "csv-parse";
import { badRow, ColumnTypes, type TableFacts, type TableReader } from "./table";

const MAX_ROW_BYTES = 16 * 1024 * 1024;

/** CSV with a header, as RFC 4180 has it; every row with as many fields as the header. */
export class CsvReader implements TableReader {
  private readonly types = new ColumnTypes();
  private readonly parser: Parser;
  private readonly utf8 = new TextDecoder("utf-8", { fatal: true });
  private header: string[] | undefined;
  private numRows = 0;
  private failure: Error | undefined;

  constructor() {
    this.parser = parse({ bom: true, max_record_size: MAX_ROW_BYTES, skip_empty_lines: true });
    this.parser.on("data", (row: string[]) => this.read(row));
    this.parser.on("error", (error) => {
      this.failure ??= error;
    });
  }

  async push(chunk: Buffer): Promise<void> {
    try {
      this.utf8.decode(chunk, { stream: true });
    } catch {
      throw badRow(this.numRows + 2, "or one soon after is not UTF-8");
    }
    if (!this.failure && !this.parser.write(chunk)) {
      const roomOrEnd = Promise.race([once(this.parser, "drain"), once(this.parser, "close")]);
      // It rejects with what our own listener has noted.
      await roomOrEnd.catch(() => undefined);
    }
    this.throwFailure();
  }

  async end(): Promise<TableFacts> {
    const closed = once(this.parser, "close");
    this.parser.end();
    await closed.catch(() => undefined);
    this.throwFailure();
    return { numRows: this.numRows, columns: this.types.toColumns() };
  }

  private read(row: string[]): void {
    if (this.header) {
      this.numRows += 1;
      this.header.forEach((name, at) => {
        this.types.see(name, dtypeOf(row[at] ?? ""), this.numRows + 1);
      });
      return;
    }
    this.header = row;
    try {
      this.readHeader(row);
    } catch (error) {
      // Nobody catches what a listener throws.
      this.failure = error as Error;
      this.parser.destroy();
    }
  }

  private readHeader(names: string[]): void {
    for (const name of names) this.types.see(name, "null", 1);
    if (this.types.size !== names.length || names.includes("")) {
      throw badRow(1, "names a column twice, or not at all");
    }
  }

  private throwFailure(): void {
    if (!this.failure) return;
    if (!(this.failure instanceof CsvError)) throw this.failure;
    const { lines, record, code } = this.failure as CsvError & { record?: unknown[] };
    const row = Number(lines ?? this.numRows + 2);
    if (code === "CSV_RECORD_INCONSISTENT_FIELDS_LENGTH" && record && this.header) {
      const fields = record.length === 1 ? "1 field" : `${record.length} fields`;
      throw badRow(row, `has ${fields}, and the header ${this.header.length}`);
    }
    throw badRow(row, `is not well-formed CSV: ${code}`);
  }
}

function dtypeOf(text: string): string {
  if (text === "") return "null";
  if (/^[+-]?\d{1,18}$/.test(text)) return "int64";
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) return "double";
  if (/^(true|false)$/i.test(text)) return "bool";
  return "string";
}
