import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

export interface Command {
  name: string;
  program: string;
  args: string[];
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  uid?: number;
  gid?: number;
  logFile: string;
}

/** A child process that can be stopped, killed, frozen and resumed. */
export class ManagedProcess {
  readonly exited: Promise<number | null>;
  private ended = false;

  private constructor(
    readonly name: string,
    readonly pid: number,
    child: ChildProcess,
    private readonly logFile: string,
  ) {
    this.exited = new Promise((resolve) => {
      child.once("exit", (code) => {
        this.ended = true;
        resolve(code);
      });
    });
  }

  static start(command: Command): ManagedProcess {
    mkdirSync(dirname(command.logFile), { recursive: true });
    // The child logs to a file instead of a pipe: it can still log after this process has ended,
    // and its log lines cost this process no CPU time.
    const log = openSync(command.logFile, "a", 0o600);
    const child = spawn(command.program, command.args, {
      cwd: command.cwd,
      env: command.env ?? process.env,
      // The child has its own process group: Ctrl-C reaches only this process, which then stops its
      // children in order.
      detached: true,
      stdio: ["ignore", log, log],
      ...(command.uid === undefined ? {} : { uid: command.uid }),
      ...(command.gid === undefined ? {} : { gid: command.gid }),
    });
    closeSync(log);
    if (child.pid === undefined) {
      child.on("error", () => undefined);
      throw new Error(`could not start ${command.name}: is ${command.program} installed?`);
    }
    return new ManagedProcess(command.name, child.pid, child, command.logFile);
  }

  get alive(): boolean {
    return !this.ended;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.ended) process.kill(this.pid, signal);
  }

  /** Kills the whole process group at once, like a crash. */
  async kill(): Promise<void> {
    killGroup(this.pid);
    await this.exited;
  }

  /**
   * Sends a signal that asks the process to end. Kills its process group if it still runs after
   * `graceMs`.
   */
  async stop(signal: NodeJS.Signals = "SIGTERM", graceMs = 15_000): Promise<void> {
    if (this.ended) return;
    this.signal("SIGCONT");
    this.signal(signal);
    const timer = setTimeout(() => killGroup(this.pid), graceMs);
    await this.exited;
    clearTimeout(timer);
  }

  /** The last lines of the process's log, for an error message. */
  logTail(lines = 15): string {
    if (!existsSync(this.logFile)) return "";
    return readFileSync(this.logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }
}

export function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group has already ended.
  }
}
