import type { BootstrapStep } from "../../core/bootstrap";
import { redact } from "../../infra/bootstrap/redact";
import type { Context } from "../../infra/context";
import { appendStepLog } from "../../infra/database/bootstraps";

const FLUSH_MS = 1_000;
const LAST_LINES = 8;

/** What a step says, written to the database once a second, so that people can follow it. */
export class StepLog {
  private line = "";
  private unwritten = "";
  private readonly last: string[] = [];
  private writing: Promise<void> = Promise.resolve();
  private readonly timer: NodeJS.Timeout;

  /** @param secrets never shown, should the machine say them. */
  constructor(
    private readonly ctx: Context,
    private readonly workerId: string,
    private readonly step: BootstrapStep,
    private readonly secrets: string[],
  ) {
    this.timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  /** Lines are shown once they are whole: a secret may come in two pieces. */
  readonly add = (text: string): void => {
    // Postgres keeps no NUL, and nobody can read it.
    const lines = (this.line + text.replaceAll("\0", "")).split("\n");
    this.line = lines.pop() ?? "";
    for (const line of lines) this.show(line);
  };

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
    const shown = redact(line.trimEnd(), this.secrets);
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
