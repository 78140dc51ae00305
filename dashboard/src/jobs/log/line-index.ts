const NEWLINE = 10;
const GROWTH = 2;

/** The bytes of a log and the offsets of its lines. Append-only. */
export class LineIndex {
  private bytes: Uint8Array<ArrayBuffer>;
  private starts = new Uint32Array(1024);
  /** The number of lines started so far. After a final newline, this includes an empty line. */
  private startedLines = 0;
  length = 0;
  /**
   * The length of the longest line in bytes. This is about its length in characters, because logs
   * are mostly ASCII.
   */
  longest = 0;
  private readonly decoder = new TextDecoder();

  constructor(capacity: number) {
    this.bytes = new Uint8Array(Math.max(1024, capacity));
  }

  /** The number of lines, without the empty line after a final newline. */
  get lines(): number {
    const isOpen = this.length > 0 && this.bytes[this.length - 1] !== NEWLINE;
    return isOpen ? this.startedLines : Math.max(0, this.startedLines - 1);
  }

  append(chunk: Uint8Array): void {
    this.reserve(this.length + chunk.length);
    this.bytes.set(chunk, this.length);
    if (this.startedLines === 0) this.startLine(0);
    const offset = this.length;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) {
      this.longest = Math.max(
        this.longest,
        offset + at - (this.starts[this.startedLines - 1] ?? 0),
      );
      this.startLine(offset + at + 1);
    }
    this.length += chunk.length;
    this.longest = Math.max(this.longest, this.length - (this.starts[this.startedLines - 1] ?? 0));
  }

  /** The text of a line, without its newline. */
  line(index: number): string {
    return this.text(index, index + 1).replace(/\r?\n?$/, "");
  }

  /** The text of the lines `from` (inclusive) to `to` (exclusive), with their newlines. */
  text(from: number, to: number): string {
    const start = this.starts[from] ?? this.length;
    const end = to < this.startedLines ? (this.starts[to] ?? this.length) : this.length;
    return this.decoder.decode(this.bytes.subarray(start, end));
  }

  copy(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.length);
  }

  private startLine(offset: number): void {
    if (this.startedLines === this.starts.length) {
      const larger = new Uint32Array(this.starts.length * GROWTH);
      larger.set(this.starts);
      this.starts = larger;
    }
    this.starts[this.startedLines] = offset;
    this.startedLines += 1;
  }

  private reserve(size: number): void {
    if (size <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(size, this.bytes.length * GROWTH));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
  }
}
