import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { killGroup } from "./process";
import { startTime } from "./process-table";

interface Recorded {
  name: string;
  pid: number;
  startedAt: string;
}

/** The name under which a stack records its own process. */
const STACK = "stack";

const fileOf = (home: string): string => join(home, "processes.json");

/** Records the processes of a stack. If the stack is killed, the next start ends them. */
export function recordProcesses(home: string, processes: { name: string; pid: number }[]): void {
  const withOurselves = [{ name: STACK, pid: process.pid }, ...processes];
  const recorded = withOurselves.map(({ name, pid }) => ({ name, pid, startedAt: startTime(pid) }));
  writeFileSync(fileOf(home), JSON.stringify(recorded));
}

export function forgetProcesses(home: string): void {
  rmSync(fileOf(home), { force: true });
}

/**
 * Claims a home directory for this process: ends processes of a killed stack, and records this
 * process.
 *
 * @returns the names of the ended processes.
 * @throws Error if another stack runs in this home, or is starting in it.
 */
export function claimHome(home: string): string[] {
  const ended = endOrphans(home);
  const ourselves = { name: STACK, pid: process.pid, startedAt: startTime(process.pid) };
  try {
    writeFileSync(fileOf(home), JSON.stringify([ourselves]), { flag: "wx" });
  } catch {
    throw new Error(`another stack is starting in ${home}`);
  }
  return ended;
}

/**
 * Ends the processes that a killed stack left running in this home, and returns their names.
 *
 * @throws Error if the stack itself still runs.
 */
export function endOrphans(home: string): string[] {
  if (!existsSync(fileOf(home))) return [];
  const recorded = JSON.parse(readFileSync(fileOf(home), "utf8")) as Recorded[];
  const alive = recorded.filter(
    ({ pid, startedAt }) => startedAt !== "" && startTime(pid) === startedAt,
  );
  const other = alive.find(({ name, pid }) => name === STACK && pid !== process.pid);
  if (other) throw new Error(`a stack is already running in ${home} (process ${other.pid})`);
  const orphans = alive.filter(({ name }) => name !== STACK);
  for (const { pid } of orphans) killGroup(pid);
  forgetProcesses(home);
  return orphans.map(({ name }) => name);
}
