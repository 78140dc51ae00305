import type { Context } from "../../services/context";
import { redact, redactCut } from "../../services/fleet/bootstrap/redact";
import { appendStepLog, type RunStep } from "../../services/fleet/bootstrap-steps";

const FLUSH_MS = 1_000;
const LAST_LINES = 8;
/** Maximum length of a line, in characters. Longer lines are cut. */
const MAX_LINE = 16 * 1024;
/**
 * Maximum output of a step, in bytes. The steps write much less. If a machine sends more, the step
 * is stopped.
 */
const MAX_BYTES = 32 * 1024 * 1024;

/** Writes a step's output to the database once per second, so that people can follow it. */
export class StepLog {
  /** The current, incomplete line; at most MAX_LINE characters. */
  private line = "";
  private received = 0;
  private unwritten = "";
  private readonly last: string[] = [];
  private writing: Promise<void> = Promise.resolve();
  private readonly timer: NodeJS.Timeout;
  private readonly secrets: string[];

  /** @param onOverflow called when the output exceeds the limit. It may be called several times. */
  constructor(
    private readonly ctx: Context,
    private readonly step: RunStep,
    secrets: string[],
    private readonly onOverflow: (maxBytes: number) => void,
  ) {
    this.secrets = [...secrets];
    this.timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  /** Adds a secret, which is redacted in all later lines. */
  hide(secret: string): void {
    this.secrets.push(secret);
  }

  /**
   * Adds output. Keeps an incomplete line until its end arrives: a secret may arrive in two pieces,
   * and must be redacted as a whole.
   */
  readonly add = (text: string): void => {
    this.received += Buffer.byteLength(text);
    if (this.received > MAX_BYTES) {
      this.onOverflow(MAX_BYTES);
      return;
    }
    // Postgres can't store NUL.
    const [rest = "", ...lines] = text.replaceAll("\0", "").split("\n");
    this.extend(rest);
    for (const line of lines) {
      this.show(this.line);
      this.line = "";
      this.extend(line);
    }
  };

  /** Appends to the current line, up to MAX_LINE. */
  private extend(text: string): void {
    const room = MAX_LINE - this.line.length;
    if (room > 0 && text !== "") this.line += text.slice(0, room);
  }

  get lastLines(): string {
    return this.last.join("\n");
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    if (this.line !== "") this.show(this.line);
    this.line = "";
    await this.flush();
  }

  private show(line: string): void {
    const isCut = line.length === MAX_LINE;
    const shown = isCut
      ? `${redactCut(line, this.secrets)} … [cut]`
      : redact(line, this.secrets).trimEnd();
    this.unwritten += `${shown}\n`;
    if (shown !== "") this.last.push(shown);
    if (this.last.length > LAST_LINES) this.last.shift();
  }

  private flush(): Promise<void> {
    const text = this.unwritten;
    this.unwritten = "";
    if (text !== "") {
      this.writing = this.writing
        .then(() => appendStepLog(this.ctx.pool, this.step, text))
        // The log is only for people, so the step continues without it.
        .catch((error: unknown) =>
          this.ctx.logger.warn({ err: String(error) }, "step log not written"),
        );
    }
    return this.writing;
  }
}
