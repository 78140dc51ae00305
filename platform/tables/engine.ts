import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { Unavailable } from "../../core/errors";
import { FairQueue } from "../concurrency/fair-queue";
import type { Logger } from "../logger";
import type { TableAnswer, TableRequest } from "./protocol";
import { Unreadable } from "./unreadable";

/** A process may have been worn out by the files before; one that dies of a file twice dies of that file. */
const MAX_TRIES = 2;
const MAX_HEAP_MB = 128;
/** What one file has left is not to be the end of the next one. */
const SWOLLEN_BYTES = 320 * 1024 * 1024;

interface EngineOptions {
  /** The process ends after so long without work, in milliseconds. */
  idleMs: number;
  /** The process's program; a test has others. */
  program?: string | undefined;
}

/** What one reading may take, and who asked for it. */
interface Reading extends Omit<TableRequest, "id"> {
  /** Whose file it is: tenants take turns. */
  tenant: string;
  /** Longest it may take, in milliseconds. */
  timeoutMs: number;
  /** Takes it back, as long as it waits. */
  signal?: AbortSignal | undefined;
}

/**
 * The process that reads tables: started when there is work. It reads one file at a time, and is replaced
 * when one was too much for it.
 */
export class TableEngine {
  private child: ChildProcess | undefined;
  private readonly turns = new FairQueue();
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

  /** How many of a tenant's files wait. */
  waitingOf(tenant: string): number {
    return this.turns.waitingOf(tenant);
  }

  /**
   * What the work leaves (protocol.ts), as JSON.
   *
   * @throws Unreadable; 503 when the server stops.
   */
  read(reading: Reading): Promise<string> {
    return this.turns.take(reading.tenant, () => this.ask(reading), reading.signal);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.end();
  }

  private async ask({ work, path, format, timeoutMs }: Reading): Promise<string> {
    clearTimeout(this.idle);
    try {
      for (let tries = 1; ; tries++) {
        if (this.stopped) throw stopping();
        const child = this.running();
        const request: TableRequest = { id: ++this.asked, work, path, format };
        const answer = await this.answerOf(child, request, timeoutMs);
        if (answer === "died" && tries < MAX_TRIES) continue;
        if (answer === "died") {
          throw new Unreadable("reading the file took more memory than it may, or crashed");
        }
        if (answer.rssBytes > SWOLLEN_BYTES) this.forget(child);
        if ("failure" in answer) throw new Unreadable(answer.failure, answer.row);
        return answer.result;
      }
    } finally {
      this.idle = setTimeout(() => void this.end(), this.options.idleMs).unref();
    }
  }

  /** What the process says; or that it died, which says something of the file. */
  private answerOf(
    child: ChildProcess,
    request: TableRequest,
    timeoutMs: number,
  ): Promise<TableAnswer | "died"> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        settle(() =>
          reject(new Unreadable(`the file took more than ${timeoutMs / 1000} s to read`)),
        );
        this.forget(child);
      }, timeoutMs);
      const onMessage = (answer: TableAnswer): void => {
        if (answer.id === request.id) settle(() => resolve(answer));
      };
      const onGone = (): void => {
        settle(() => (this.stopped ? reject(stopping()) : resolve("died")));
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
    const { pid } = child;
    if (pid !== undefined) {
      standBack(pid);
      child.once("message", () => standBack(pid));
    }
    child.on("error", (error) =>
      this.logger.warn({ err: error }, "the process that reads tables failed"),
    );
    child.once("exit", (code, signal) => {
      if (this.child !== child) return;
      this.child = undefined;
      this.logger.warn({ code, signal }, "the process that reads tables ended by itself");
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

/**
 * The server goes first. A thread has the priority of the one that starts it, so before the process has begun one call
 * is for all; on a busy machine it may have begun: then those that it has started are set, too.
 */
function standBack(pid: number): void {
  for (const thread of [pid, ...threadsOf(pid)]) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // It has ended already, or the system has no priorities.
    }
  }
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}
