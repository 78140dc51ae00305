/** Collects the parameters of a statement. */
export class Parameters {
  readonly values: unknown[] = [];

  /** Adds a value; returns its placeholder, such as `$3`. */
  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  /** Adds several values; returns their placeholders, such as `$3, $4`. */
  addAll(values: unknown[]): string {
    return values.map((value) => this.add(value)).join(", ");
  }
}
