import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { processesNaming, processesStarting, startTime } from "../stack/process-table";
import { endOrphans } from "../stack/recorded-processes";
import { waitFor } from "../stack/wait";

const NAME = /^forge-run-(\d+)$/;

/**
 * The folder for temporary files of one test run. It is the TMPDIR of all processes of the run, so
 * processes that a killed test file left running can be found and ended.
 */
export class RunFolder {
  private constructor(readonly path: string) {}

  /**
   * Creates a folder. Also ends the processes, and removes the folders, of earlier runs that were
   * killed.
   */
  static async make(base = tmpdir()): Promise<RunFolder> {
    for (const name of readdirSync(base)) {
      const [, pid] = NAME.exec(name) ?? [];
      if (pid && startTime(Number(pid)) === "") await new RunFolder(join(base, name)).end();
    }
    const folder = new RunFolder(join(base, `forge-run-${process.pid}`));
    mkdirSync(folder.path, { recursive: true });
    // Postgres runs under its own account and has its data in this folder.
    chmodSync(folder.path, 0o755);
    return folder;
  }

  async end(): Promise<void> {
    if (!existsSync(this.path)) return;
    const killed = new Map<number, string>();
    await waitFor("the processes of the run to end", () => {
      // A starting process may belong to the run. It has no environment yet, so wait.
      const starting = processesStarting();
      const left = processesNaming(`${this.path}/`);
      for (const pid of left) {
        killed.set(pid, startTime(pid));
        kill(pid);
      }
      // A killed process loses its environment first, and takes a while to free its memory.
      const ending = [...killed].filter(([pid, at]) => at !== "" && startTime(pid) === at);
      return starting.length + left.length + ending.length === 0;
    });
    // On systems without /proc, use the processes that each stack recorded.
    for (const name of readdirSync(this.path)) endOrphans(join(this.path, name));
    rmSync(this.path, { recursive: true, force: true });
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}
