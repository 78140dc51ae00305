import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Unavailable } from "../../core/errors";
import type { TableFormat } from "../datasets/table-format";
import type { Logger } from "../logger";
import { PreviewFailed } from "./failed";
import type { PreviewAnswer, PreviewRequest } from "./protocol";

const MAX_QUEUED = 8;
const MAX_HEAP_MB = 128;
/** What one file has left is not to be the end of the next one. */
const SWOLLEN_BYTES = 320 * 1024 * 1024;

interface EngineOptions {
  /** Longest a file may take, in milliseconds. */
  timeoutMs: number;
  /** The process ends after so long without work, in milliseconds. */
  idleMs: number;
  /** The process's program; a test has others. */
  program?: string;
}

/**
 * The process that reads tables: started when there is work, one for each server. It reads one file at a
 * time, and is replaced when one was too much for it.
 */
export class PreviewEngine {
  private child: ChildProcess | undefined;
  private last: Promise<unknown> = Promise.resolve();
  private queued = 0;
  private asked = 0;
  private idle: NodeJS.Timeout | undefined;
  private stopped = false;
  private readonly program: string;

  constructor(
    private readonly options: EngineOptions,
    private readonly logger: Logger,
  ) {
    this.program = options.program ?? join(__dirname, "engine-process.js");
  }

  /** While it runs. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /**
   * A TablePreview of a file, as JSON.
   *
   * @param path absolute.
   * @throws 422 `preview_failed`; 503 when too many wait, or the server stops.
   */
  async read(path: string, format: TableFormat): Promise<string> {
    if (this.queued >= MAX_QUEUED) {
      throw new Unavailable("too many previews are under way; try again shortly");
    }
    this.queued += 1;
    const turn = this.last.then(() => this.ask(path, format));
    this.last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.queued -= 1;
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.end();
    await this.last;
  }

  private async ask(path: string, format: TableFormat): Promise<string> {
    if (this.stopped) throw stopping();
    clearTimeout(this.idle);
    const child = this.running();
    const request: PreviewRequest = { id: ++this.asked, path, format };
    try {
      const answer = await this.answerOf(child, request);
      if (answer.rssBytes > SWOLLEN_BYTES) this.forget(child);
      if ("failure" in answer) throw new PreviewFailed(answer.failure);
      return answer.preview;
    } finally {
      this.idle = setTimeout(() => void this.end(), this.options.idleMs).unref();
    }
  }

  /** What the process says; or what its end says of the file. */
  private answerOf(child: ChildProcess, request: PreviewRequest): Promise<PreviewAnswer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const seconds = this.options.timeoutMs / 1000;
        settle(() => reject(new PreviewFailed(`the file took more than ${seconds} s to read`)));
        this.forget(child);
      }, this.options.timeoutMs);
      const onMessage = (answer: PreviewAnswer): void => {
        if (answer.id === request.id) settle(() => resolve(answer));
      };
      const onGone = (): void => {
        const failure = new PreviewFailed(
          "reading the file took more memory than it may, or crashed",
        );
        settle(() => reject(this.stopped ? stopping() : failure));
        this.forget(child);
      };
      const settle = (how: () => void): void => {
        clearTimeout(timer);
        child.off("message", onMessage).off("exit", onGone).off("error", onGone);
        how();
      };
      child.on("message", onMessage).once("exit", onGone).once("error", onGone);
      child.send(request, (error) => {
        if (error) onGone();
      });
    });
  }

  private running(): ChildProcess {
    const known = this.child;
    if (known?.connected && known.exitCode === null && known.signalCode === null) return known;
    // Nothing of the server's environment: neither its secrets nor a zone that would shift times.
    const child = fork(this.program, {
      env: { TZ: "UTC" },
      execArgv: [`--max-old-space-size=${MAX_HEAP_MB}`],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    child.on("error", (error) => this.logger.warn({ err: error }, "the preview process failed"));
    child.once("exit", (code, signal) => {
      if (this.child !== child) return;
      this.child = undefined;
      this.logger.warn({ code, signal }, "the preview process ended by itself");
    });
    this.child = child;
    return child;
  }

  /** Ends a process that is of no more use; the next request starts another. */
  private forget(child: ChildProcess): void {
    if (this.child === child) this.child = undefined;
    child.kill("SIGKILL");
  }

  private async end(): Promise<void> {
    clearTimeout(this.idle);
    const { child } = this;
    if (!child) return;
    const hasExited = child.exitCode !== null || child.signalCode !== null;
    const exit = hasExited ? undefined : once(child, "exit");
    this.forget(child);
    await exit;
  }
}

const stopping = (): Unavailable => new Unavailable("the server is stopping; try again shortly");
