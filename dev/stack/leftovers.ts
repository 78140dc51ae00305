import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { killGroup } from "./process";
import { startTime } from "./process-table";

interface Recorded {
  name: string;
  pid: number;
  startedAt: string;
}

/** The name under which a stack's own process is noted. */
const STACK = "stack";

const fileOf = (home: string): string => join(home, "processes.json");

/** Notes which processes a stack has, so that the next start can end those of a stack that was killed. */
export function recordProcesses(home: string, processes: { name: string; pid: number }[]): void {
  const withOurselves = [{ name: STACK, pid: process.pid }, ...processes];
  const recorded = withOurselves.map(({ name, pid }) => ({ name, pid, startedAt: startTime(pid) }));
  writeFileSync(fileOf(home), JSON.stringify(recorded));
}

export function forgetProcesses(home: string): void {
  rmSync(fileOf(home), { force: true });
}

/**
 * Makes a home this process' own: ends what a killed stack left running there, and notes ourselves.
 *
 * @returns the names of what was ended.
 * @throws when another stack runs on the home, or starts on it at this moment.
 */
export function claimHome(home: string): string[] {
  const ended = endLeftovers(home);
  const ourselves = { name: STACK, pid: process.pid, startedAt: startTime(process.pid) };
  try {
    writeFileSync(fileOf(home), JSON.stringify([ourselves]), { flag: "wx" });
  } catch {
    throw new Error(`a stack is starting on ${home} already`);
  }
  return ended;
}

/**
 * Ends what a killed stack left running on this home; the names of what was ended.
 *
 * @throws when the stack itself still runs.
 */
export function endLeftovers(home: string): string[] {
  if (!existsSync(fileOf(home))) return [];
  const recorded = JSON.parse(readFileSync(fileOf(home), "utf8")) as Recorded[];
  const alive = recorded.filter(
    ({ pid, startedAt }) => startedAt !== "" && startTime(pid) === startedAt,
  );
  const other = alive.find(({ name, pid }) => name === STACK && pid !== process.pid);
  if (other) throw new Error(`a stack already runs on ${home} (process ${other.pid})`);
  const leftovers = alive.filter(({ name }) => name !== STACK);
  for (const { pid } of leftovers) killGroup(pid);
  forgetProcesses(home);
  return leftovers.map(({ name }) => name);
}
