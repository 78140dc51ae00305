import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  parentAndSession,
  processesMentioning,
  processesStarting,
  startTime,
} from "../stack/process-table";
import { endOrphans } from "../stack/recorded-processes";
import { waitFor } from "../stack/wait";
import { MEMORY } from "./memory-folder";

const NAME = /^forge-run-(\d+)$/;
/** Where runs have their folders, unless the user chose another place. */
const BASES = [MEMORY, "/tmp"];

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
    // A killed run may have chosen another base, for example when less memory was free.
    for (const each of new Set([base, ...BASES].filter(existsSync))) {
      for (const name of readdirSync(each)) {
        const [, pid] = NAME.exec(name) ?? [];
        const path = join(each, name);
        if (pid && startTime(Number(pid)) === "" && isOurs(path)) await new RunFolder(path).end();
      }
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
    const families = new Set([parentAndSession(process.pid).session]);
    // The number of consecutive probes that found no process. Two are necessary: one probe may miss
    // a starting process in a session that is not in `families` yet. The next probe finds it by its
    // TMPDIR.
    let quiet = 0;
    await waitFor("the processes of the run to end", () => {
      const left = processesMentioning(`${this.path}/`);
      for (const pid of left) {
        families.add(parentAndSession(pid).session);
        killed.set(pid, startTime(pid));
        kill(pid);
      }
      // A starting process of the run has no environment yet, so it can't be found by its TMPDIR.
      // Wait for it.
      const starting = processesStarting().filter((pid) => {
        const { parent, session } = parentAndSession(pid);
        return families.has(session) || killed.has(parent) || parent === process.pid;
      });
      // A killed process loses its environment first, and takes a while to free its memory. Wait
      // for it by its process id.
      const ending = [...killed].filter(([pid, at]) => at !== "" && startTime(pid) === at);
      quiet = starting.length + left.length + ending.length === 0 ? quiet + 1 : 0;
      return quiet === 2;
    });
    // On systems without /proc, the search above finds no processes. So also end the processes that
    // each stack recorded.
    for (const name of namesIn(this.path)) endOrphans(join(this.path, name));
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Whether the folder belongs to this user. False if another run has just removed it. */
const isOurs = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.uid === process.getuid?.();

/** The names in a folder. Empty if another run has removed the folder in the meantime. */
function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}
