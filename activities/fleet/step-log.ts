import type { BootstrapStep } from "../../core/fleet/bootstrap";
import type { Context } from "../../services/context";
import { redact } from "../../services/fleet/bootstrap/redact";
import { appendStepLog } from "../../services/fleet/bootstraps";

const FLUSH_MS = 1_000;
const LAST_LINES = 8;
/** Of a longer line the rest is left out. */
const MAX_LINE = 16 * 1024;
/** More than any step of ours says: such a machine floods. */
const MAX_BYTES = 32 * 1024 * 1024;

/** What a step says, written to the database once a second, so that people can follow it. */
export class StepLog {
  /** Of the line that has not ended: its beginning, and whether more came than is kept. */
  private line = "";
  private received = 0;
  private unwritten = "";
  private readonly last: string[] = [];
  private writing: Promise<void> = Promise.resolve();
  private readonly timer: NodeJS.Timeout;
  private readonly secrets: string[];

  /**
   * @param secrets never shown, should the machine say them.
   * @param onFlood it says more than anybody would read.
   */
  constructor(
    private readonly ctx: Context,
    private readonly workerId: string,
    private readonly step: BootstrapStep,
    secrets: string[],
    private readonly onFlood: (maxBytes: number) => void,
  ) {
    this.secrets = [...secrets];
    this.timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  /** From now on this is never shown either. */
  hide(secret: string): void {
    this.secrets.push(secret);
  }

  /** Lines are shown once they are whole: a secret may come in two pieces. */
  readonly add = (text: string): void => {
    this.received += text.length;
    if (this.received > MAX_BYTES) {
      this.onFlood(MAX_BYTES);
      return;
    }
    // Postgres keeps no NUL, and nobody can read it.
    const [rest = "", ...lines] = text.replaceAll("\0", "").split("\n");
    this.lengthen(rest);
    for (const line of lines) {
      this.show(this.line);
      this.line = "";
      this.lengthen(line);
    }
  };

  /** Copies no more than the line may still take, however many pieces it comes in. */
  private lengthen(text: string): void {
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
    const text = isCut ? withoutBeginnings(line, this.secrets) : line.trimEnd();
    const shown = redact(text, this.secrets) + (isCut ? " … [cut]" : "");
    this.unwritten += `${shown}\n`;
    if (shown !== "") this.last.push(shown);
    if (this.last.length > LAST_LINES) this.last.shift();
  }

  private flush(): Promise<void> {
    const text = this.unwritten;
    this.unwritten = "";
    if (text !== "") {
      this.writing = this.writing
        .then(() => appendStepLog(this.ctx.pool, this.workerId, this.step, text))
        // The log is for people; the step goes on without.
        .catch((error: unknown) => this.ctx.logger.warn({ err: String(error) }, "step log lost"));
    }
    return this.writing;
  }
}

/** Half a secret may stand where a line was cut. */
function withoutBeginnings(line: string, secrets: string[]): string {
  for (const secret of secrets) {
    for (let length = secret.length - 1; length > 0; length--) {
      if (line.endsWith(secret.slice(0, length))) return line.slice(0, -length);
    }
  }
  return line;
}
