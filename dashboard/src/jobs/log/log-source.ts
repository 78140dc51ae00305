import { LineIndex } from "./line-index";
import type { LogState } from "./protocol";

/**
 * The first request fetches this many bytes from the log's end, where users look first. The
 * response also has the log's total length.
 */
const TAIL_BYTES = 65_536;
const POLL_MS = 1_500;
const RETRY_MS = 5_000;

/**
 * Fetches a log. If the log is large, fetches its end first, then the part before. Afterwards,
 * fetches appended bytes.
 */
export class LogSource {
  /** The log from its start, as far as it is loaded. */
  private whole = new LineIndex(TAIL_BYTES);
  private tail: LineIndex | undefined;
  private total = 0;
  private error: string | null = null;
  private isLive = false;
  private isReading = false;
  /**
   * Whether a read was requested while another read was running. The requested read runs after the
   * running one, which may have missed the newest bytes.
   */
  private isRequestedAgain = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly url: string,
    private readonly apiKey: string,
    private readonly onChange: (state: LogState) => void,
  ) {
    void this.run(() => this.open());
  }

  /** The index to read lines from: `tail` while the whole log is loading, then `whole`. */
  get index(): LineIndex {
    return this.tail ?? this.whole;
  }

  setLive(isLive: boolean): void {
    if (isLive === this.isLive) return;
    this.isLive = isLive;
    // Reads once more when the job ends: its last lines may have arrived after the last read.
    this.schedule(0);
  }

  private async open(): Promise<void> {
    const end = await this.fetch(`bytes=-${TAIL_BYTES}`);
    const range = rangeOf(end);
    // The log has no bytes yet, or the server sent all of it.
    if (!range || range.start === 0) {
      this.total = range?.total ?? 0;
      await this.read(end);
      return;
    }
    const { start, total } = range;
    this.total = total;
    const bytes = new Uint8Array(await end.arrayBuffer());
    this.tail = tailIndex(bytes);
    this.changed();
    this.whole = new LineIndex(total);
    await this.read(await this.fetch(`bytes=0-${start - 1}`));
    this.whole.append(bytes);
    this.tail = undefined;
    this.changed();
  }

  /**
   * Reads the appended bytes. The range starts at the last loaded byte, because the server refuses
   * a range that starts at the log's end.
   */
  private async readMore(): Promise<void> {
    const from = this.whole.length;
    if (from === 0) return await this.open();
    const response = await this.fetch(`bytes=${from - 1}-`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    // `tail` is still set if `open` failed before `whole` was complete. This response has all bytes
    // that are missing in `whole`, so `tail` is not needed any more.
    this.tail = undefined;
    if (response.status !== 206 || bytes.length <= 1) return this.changed();
    this.whole.append(bytes.subarray(1));
    this.total = this.whole.length;
    this.changed();
  }

  private async read(response: Response): Promise<void> {
    const reader = response.body?.getReader();
    for (;;) {
      const piece = await reader?.read();
      if (!piece || piece.done) break;
      this.whole.append(piece.value);
      this.total = Math.max(this.total, this.whole.length);
      this.changed();
    }
    this.changed();
  }

  private async run(work: () => Promise<void>): Promise<void> {
    this.isReading = true;
    this.isRequestedAgain = false;
    try {
      await work();
      if (this.error !== null) {
        this.error = null;
        this.changed();
      }
      this.isReading = false;
      if (this.isLive) this.schedule(POLL_MS);
      else if (this.isRequestedAgain) this.schedule(0);
    } catch (error) {
      this.isReading = false;
      this.error = error instanceof Error ? error.message : String(error);
      this.changed();
      this.schedule(RETRY_MS);
    }
  }

  /** Starts a read after a delay. Only one read runs at a time: two would append the same bytes. */
  private schedule(afterMs: number): void {
    clearTimeout(this.timer);
    if (this.isReading) {
      this.isRequestedAgain = true;
      return;
    }
    this.timer = setTimeout(() => void this.run(() => this.readMore()), afterMs);
  }

  private async fetch(range?: string): Promise<Response> {
    const response = await fetch(this.url, {
      headers: {
        authorization: `Bearer ${this.apiKey}`,
        accept: "text/plain",
        ...(range ? { range } : {}),
      },
      cache: "no-store",
      credentials: "omit",
    });
    // The log is empty, so the server refuses every range.
    if (response.status === RANGE_NOT_SATISFIABLE && totalOf(response) === 0) return new Response();
    if (!response.ok) throw new Error(`the log could not be read (HTTP ${response.status})`);
    return response;
  }

  private changed(): void {
    const { index } = this;
    this.onChange({
      lines: index.lines,
      loaded: this.whole.length,
      total: this.total,
      isTail: this.tail !== undefined,
      longest: index.longest,
      error: this.error,
    });
  }
}

const RANGE_NOT_SATISFIABLE = 416;

/** The range of a response; undefined if the response has the whole log. */
function rangeOf(response: Response): { start: number; total: number } | undefined {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  return match ? { start: Number(match[1]), total: Number(match[2]) } : undefined;
}

const totalOf = (response: Response): number =>
  Number(/^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? Number.NaN);

/** Indexes the log's tail without its first line, which is most likely incomplete. */
function tailIndex(bytes: Uint8Array): LineIndex {
  const index = new LineIndex(bytes.length);
  index.append(bytes.subarray(bytes.indexOf(10) + 1));
  return index;
}
