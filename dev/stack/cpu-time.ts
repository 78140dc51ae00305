import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf } from "../../platform/process-fields";

/**
 * The CPU time that a process has used so far, in seconds. Sums the times of its threads: Linux
 * counts these in ns, but the time of the whole process in steps of 10 ms. Unlike elapsed time, CPU
 * time is not affected by other processes.
 */
export function cpuSeconds(pid: number): number {
  const threads = `/proc/${pid}/task`;
  const times = readdirSync(threads).map((thread) =>
    Number(readFileSync(join(threads, thread, "schedstat"), "utf8").split(" ")[0]),
  );
  return times.reduce((sum, ns) => sum + ns, 0) / 1e9;
}

/** Returns the share of a core that each process uses, measured over `forMs` milliseconds. */
export async function cpuShares(pids: number[], forMs: number): Promise<number[]> {
  const before = pids.map(cpuSeconds);
  const began = performance.now();
  await sleep(forMs);
  const tookS = (performance.now() - began) / 1000;
  return pids.map((pid, at) => (cpuSeconds(pid) - (before[at] ?? 0)) / tookS);
}

/** Resident memory of a process. */
export const residentKib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

/** Linux's clock ticks per second. /proc/<pid>/stat has times in ticks. */
const TICKS_PER_S = 100;

/**
 * The CPU time of a process in seconds, in steps of 10 ms. Includes ended threads and ended child
 * processes.
 */
export function totalCpuSeconds(pid: number): number {
  try {
    // utime, stime, cutime and cstime: fields 14 to 17 of the file. `fieldsOf` begins at field 3.
    const times = fieldsOf(pid).slice(11, 15);
    return times.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_S;
  } catch {
    return 0; // The process has ended. Its parent's time includes its time.
  }
}
