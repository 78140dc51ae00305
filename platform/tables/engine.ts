import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import { Unavailable } from "../../core/errors";
import { FairQueue } from "../concurrency/fair-queue";
import type { Logger } from "../logger";
import { OVER_MEMORY, type TableAnswer, type TableRequest } from "./protocol";
import { ReadingLimit, TICK_MS } from "./reading-limit";
import { ReadInterrupted, Unreadable } from "./unreadable";

/**
 * Maximum number of tries to read a file. If the process ends without an answer, a new process
 * tries again. An earlier file may have caused the first crash, so a file is refused only after a
 * second crash.
 */
const MAX_TRIES = 2;
/** Signals that mean a crash. Other signals, such as SIGKILL, come from outside the process. */
const CRASHES = new Set<string>([OVER_MEMORY, "SIGABRT", "SIGFPE", "SIGILL", "SIGSEGV", "SIGTRAP"]);
const MAX_HEAP_MB = 128;
/** If the process uses more memory than this after reading a file, it is replaced. */
const REPLACE_RSS_BYTES = 320 * 1024 * 1024;

interface EngineOptions {
  /** The process ends after this time without work, in milliseconds. */
  idleMs: number;
  /** Path of the process's program. Default: engine-process.js. Set by tests only. */
  program?: string | undefined;
}

/** One file to read, with its limits. */
export interface Reading extends Omit<TableRequest, "id"> {
  /** The tenant that owns the file. Tenants are served round-robin. */
  tenant: string;
  /** Longest time to read it, in milliseconds (reading-limit.ts). */
  timeoutMs: number;
  /** Cancels the read while it is queued. A read that has started is not cancelled. */
  signal?: AbortSignal | undefined;
  /** Called after each try with the time that the process spent on it, in milliseconds. */
  onRead?: ((ms: number) => void) | undefined;
}

/** A process ended without an answer. */
interface Death {
  death: string;
  /**
   * Whether the file may be the cause: the process was ready to read, and then crashed or exited.
   * False if it was killed from outside.
   */
  isCrash: boolean;
}

/**
 * Manages the process that reads tables. The process starts when there is work, reads one file at a
 * time, and is replaced after a crash, a time-out or too much memory.
 */
export class TableEngine {
  private child: ChildProcess | undefined;
  /** The processes that have sent READER_STARTED. */
  private readonly started = new WeakSet<ChildProcess>();
  private readonly queue = new FairQueue();
  private lastId = 0;
  private idle: NodeJS.Timeout | undefined;
  private stopped = false;
  private readonly program: string;

  constructor(
    private readonly options: EngineOptions,
    private readonly logger: Logger,
  ) {
    this.program = options.program ?? join(__dirname, "engine-process.js");
  }

  /** Undefined while no process runs. */
  get pid(): number | undefined {
    return this.child?.pid;
  }

  /**
   * Returns the result (protocol.ts) as JSON. @throws Unreadable; ReadInterrupted; 503 when the
   * server stops.
   */
  read(reading: Reading): Promise<string> {
    return this.queue.run(reading.tenant, () => this.readNow(reading), reading.signal);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.end();
  }

  private async readNow(reading: Reading): Promise<string> {
    const { work, path, format } = reading;
    clearTimeout(this.idle);
    const deaths: Death[] = [];
    try {
      for (;;) {
        if (this.stopped) throw stopping();
        const child = this.running();
        const request: TableRequest = { id: ++this.lastId, work, path, format };
        const answer = await this.answerOf(child, request, reading);
        if ("death" in answer) {
          deaths.push(answer);
          if (deaths.length < MAX_TRIES) continue;
          if (!deaths.every(({ isCrash }) => isCrash)) throw new ReadInterrupted(answer.death);
          throw new Unreadable("reading the file needed more memory than is allowed, or crashed");
        }
        if (answer.rssBytes > REPLACE_RSS_BYTES) this.discard(child);
        if ("interruption" in answer) throw new ReadInterrupted(answer.interruption);
        if ("failure" in answer) throw new Unreadable(answer.failure, answer.row);
        return answer.result;
      }
    } finally {
      this.idle = setTimeout(() => void this.end(), this.options.idleMs).unref();
    }
  }

  private answerOf(
    child: ChildProcess,
    request: TableRequest,
    { timeoutMs, onRead }: Reading,
  ): Promise<TableAnswer | Death> {
    return new Promise((resolve, reject) => {
      const limit = new ReadingLimit(child.pid, timeoutMs);
      const timer = setInterval(() => {
        const verdict = limit.verdict();
        if (!verdict) return;
        const seconds = `${timeoutMs / 1000} s`;
        const error =
          verdict === "reached"
            ? new Unreadable(`the file took more than ${seconds} to read`)
            : new ReadInterrupted(`the reader had too little of its ${seconds} of CPU time`);
        settle(() => reject(error));
        this.discard(child);
      }, TICK_MS);
      const onMessage = (answer: TableAnswer): void => {
        if (answer.id === request.id) settle(() => resolve(answer));
      };
      const die = (death: string, isCrash: boolean): void => {
        settle(() => (this.stopped ? reject(stopping()) : resolve({ death, isCrash })));
        this.discard(child);
      };
      const onExit = (code: number | null, signal: NodeJS.Signals | null): void => {
        const ended = signal === null || CRASHES.has(signal);
        die(`its process ended with ${signal ?? code}`, ended && this.started.has(child));
      };
      const onError = (error: Error): void =>
        die(`its process failed with ${codeOf(error)}`, false);
      let isSettled = false;
      const settle = (how: () => void): void => {
        if (isSettled) return;
        isSettled = true;
        clearInterval(timer);
        child.off("message", onMessage).off("exit", onExit).off("error", onError);
        onRead?.(limit.readMs());
        how();
      };
      child.on("message", onMessage).once("exit", onExit).once("error", onError);
      child.send(request, (error) => {
        if (error) onError(error);
      });
    });
  }

  private running(): ChildProcess {
    const known = this.child;
    if (known?.connected && known.exitCode === null && known.signalCode === null) return known;
    const child = this.fork();
    const { pid } = child;
    if (pid !== undefined) {
      lowerPriority(pid);
      child.once("message", () => {
        this.started.add(child);
        lowerPriority(pid);
      });
    }
    child.on("error", (error) => this.logger.warn({ err: error }, "table reader process failed"));
    child.once("exit", (code, signal) => {
      if (this.child !== child) return;
      this.child = undefined;
      this.logger.warn({ code, signal }, "table reader process ended unexpectedly");
    });
    this.child = child;
    return child;
  }

  private fork(): ChildProcess {
    try {
      return fork(this.program, {
        // Not the server's environment: it has secrets, and its time zone would shift times.
        env: { TZ: "UTC" },
        execArgv: [`--max-old-space-size=${MAX_HEAP_MB}`],
        stdio: ["ignore", "ignore", "ignore", "ipc"],
      });
    } catch (error) {
      // `fork` throws some errors, such as ENOMEM. Most errors come as an event instead.
      throw new ReadInterrupted(`no process could be started: ${codeOf(error)}`);
    }
  }

  /** Kills a process. The next request starts another. */
  private discard(child: ChildProcess): void {
    if (this.child === child) this.child = undefined;
    child.kill("SIGKILL");
  }

  private async end(): Promise<void> {
    clearTimeout(this.idle);
    const { child } = this;
    if (!child) return;
    const hasExited = child.exitCode !== null || child.signalCode !== null;
    const exit = hasExited ? undefined : once(child, "exit");
    this.discard(child);
    await exit;
  }
}

const codeOf = (error: unknown): unknown => (error as NodeJS.ErrnoException).code;
const stopping = (): Unavailable => new Unavailable("the server is stopping; try again shortly");

/**
 * Gives the process a lower priority than the server. New threads inherit the priority of their
 * creator. On a busy machine the process may already have threads, so their priority is set too.
 */
function lowerPriority(pid: number): void {
  for (const thread of [pid, ...threadsOf(pid)]) {
    try {
      setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
    } catch {
      // The thread has ended, or the system has no priorities.
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
