/** A least-recently-used cache of texts, limited by count and bytes. */
export class TextCache {
  private readonly texts = new Map<string, string>();
  private bytes = 0;

  constructor(
    private readonly maxCount: number,
    private readonly maxBytes: number,
  ) {}

  get(key: string): string | undefined {
    const text = this.texts.get(key);
    if (text === undefined) return undefined;
    // Re-insert at the end: a Map iterates in insertion order.
    this.texts.delete(key);
    this.texts.set(key, text);
    return text;
  }

  set(key: string, text: string): void {
    this.remove(key);
    this.texts.set(key, text);
    this.bytes += Buffer.byteLength(text);
    for (const oldest of this.texts.keys()) {
      if (this.texts.size <= this.maxCount && this.bytes <= this.maxBytes) return;
      this.remove(oldest);
    }
  }

  private remove(key: string): void {
    this.bytes -= Buffer.byteLength(this.texts.get(key) ?? "");
    this.texts.delete(key);
  }
}
