import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endLeftovers } from "../stack/leftovers";
import { processesNaming, processesStarting, startTime } from "../stack/process-table";
import { waitFor } from "../stack/wait";

const NAME = /^forge-run-(\d+)$/;

/**
 * The folder for temporary files of one run of the tests, TMPDIR of all that it starts. So whatever a
 * killed test file left running can be found and ended.
 */
export class RunFolder {
  private constructor(readonly path: string) {}

  /** Ends and removes what earlier runs left that were killed, too. */
  static async make(): Promise<RunFolder> {
    for (const name of readdirSync(tmpdir())) {
      const [, pid] = NAME.exec(name) ?? [];
      if (pid && startTime(Number(pid)) === "") await new RunFolder(join(tmpdir(), name)).end();
    }
    const folder = new RunFolder(join(tmpdir(), `forge-run-${process.pid}`));
    mkdirSync(folder.path, { recursive: true });
    // Postgres has an account of its own, and its data lies below.
    chmodSync(folder.path, 0o755);
    return folder;
  }

  async end(): Promise<void> {
    if (!existsSync(this.path)) return;
    const killed = new Map<number, string>();
    await waitFor("the processes of the run to end", () => {
      // One of these may be the run's; which, can be told in a moment.
      const starting = processesStarting();
      const left = processesNaming(`${this.path}/`);
      for (const pid of left) {
        killed.set(pid, startTime(pid));
        kill(pid);
      }
      // A killed one loses its environment first, and takes a while to give its memory back.
      const ending = [...killed].filter(([pid, at]) => at !== "" && startTime(pid) === at);
      return starting.length + left.length + ending.length === 0;
    });
    // Where processes can't be looked through, stacks have noted theirs.
    for (const name of readdirSync(this.path)) endLeftovers(join(this.path, name));
    rmSync(this.path, { recursive: true, force: true });
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
