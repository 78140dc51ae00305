import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf } from "./process-table";

/**
 * CPU time that a process of this machine has taken so far, in seconds: of each thread in ns, where the
 * process itself has it in steps of 10 ms. Unlike the clock, it doesn't count what others do meanwhile.
 */
export function cpuSeconds(pid: number): number {
  const threads = `/proc/${pid}/task`;
  const times = readdirSync(threads).map((thread) =>
    Number(readFileSync(join(threads, thread, "schedstat"), "utf8").split(" ")[0]),
  );
  return times.reduce((sum, ns) => sum + ns, 0) / 1e9;
}

/** Linux' unit for a process' times. */
const TICKS_PER_S = 100;

/** The same in steps of 10 ms, with all threads and child processes that have ended. */
export function totalCpuSeconds(pid: number): number {
  try {
    // utime, stime, cutime and cstime: fields 14 to 17.
    const times = fieldsOf(pid).slice(11, 15);
    return times.reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_S;
  } catch {
    return 0; // It has ended; its parent has its time.
  }
}
