import { LineIndex } from "./line-index";
import type { LogState } from "./protocol";

/** What is asked for first: the end, which is what people look at, and with it the length. */
const TAIL_BYTES = 65_536;
const POLL_MS = 1_500;
const RETRY_MS = 5_000;

/** Fetches a log: the end of it first where it is large, then all of it, then what is appended. */
export class LogSource {
  /** The whole log as far as it is here. */
  private whole = new LineIndex(TAIL_BYTES);
  private tail: LineIndex | undefined;
  private total = 0;
  private error: string | null = null;
  private isLive = false;
  private isReading = false;
  /** Something may have come since the read under way began. */
  private isAsked = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly url: string,
    private readonly apiKey: string,
    private readonly onChange: (state: LogState) => void,
  ) {
    void this.run(() => this.open());
  }

  /** What lines are read from: the end alone, until all is here. */
  get index(): LineIndex {
    return this.tail ?? this.whole;
  }

  setLive(isLive: boolean): void {
    if (isLive === this.isLive) return;
    this.isLive = isLive;
    // Also when it ends: the last lines may have come since the last read.
    this.schedule(0);
  }

  private async open(): Promise<void> {
    const end = await this.fetch(`bytes=-${TAIL_BYTES}`);
    const range = rangeOf(end);
    // No byte is there yet, or the server sends all of it.
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

  /** Asks from the last byte that is here: there always is one, so "nothing new" is no error. */
  private async readMore(): Promise<void> {
    const from = this.whole.length;
    if (from === 0) return await this.open();
    const response = await this.fetch(`bytes=${from - 1}-`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    // After a failure on the way to the end that was here first.
    this.tail = undefined;
    if (response.status !== 206 || bytes.length <= 1) return;
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
    this.isAsked = false;
    try {
      await work();
      if (this.error !== null) {
        this.error = null;
        this.changed();
      }
      this.isReading = false;
      if (this.isLive) this.schedule(POLL_MS);
      else if (this.isAsked) this.schedule(0);
    } catch (error) {
      this.isReading = false;
      this.error = error instanceof Error ? error.message : String(error);
      this.changed();
      this.schedule(RETRY_MS);
    }
  }

  /** One read at a time: two would append the same bytes. */
  private schedule(afterMs: number): void {
    clearTimeout(this.timer);
    if (this.isReading) {
      this.isAsked = true;
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
    // A log without a byte has no range.
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

/** What of how much an answer has; undefined where it has all. */
function rangeOf(response: Response): { start: number; total: number } | undefined {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
  return match ? { start: Number(match[1]), total: Number(match[2]) } : undefined;
}

const totalOf = (response: Response): number =>
  Number(/^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? Number.NaN);

/** Without its first line, which is most likely cut. */
function tailIndex(bytes: Uint8Array): LineIndex {
  const index = new LineIndex(bytes.length);
  index.append(bytes.subarray(bytes.indexOf(10) + 1));
  return index;
}
