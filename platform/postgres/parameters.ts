/** Collects the parameters of a statement. */
export class Parameters {
  readonly values: unknown[] = [];

  /** Adds a value; returns its placeholder, as `$3`. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  /** Adds several values; returns their placeholders, as `$3, $4`. */
  addAll(values: unknown[]): string {
    return values.map((value) => this.add(value)).join(", ");
  }

  /**
   * `(a, b) values ($1, $2)` for an INSERT. Rows with the same columns give the same text, whose
   * prepared statement is reused.
   */
  insert(row: Record<string, unknown>): string {
    const { columns, values } = this.row(row);
    return `(${columns}) values (${values})`;
  }

  /** The columns of a row and the placeholders of its values, as `a, b` and `$1, $2`. */
  row(row: Record<string, unknown>): { columns: string; values: string } {
    return { columns: Object.keys(row).join(", "), values: this.addAll(Object.values(row)) };
  }
}
