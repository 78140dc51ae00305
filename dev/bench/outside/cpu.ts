import { readFileSync } from "node:fs";
import { processesIn } from "../../stack/process-table";
import type { Forge, Stage } from "./stage";

/** Linux' unit for a process' times. */
const TICKS_PER_S = 100;

/** CPU time of the processes so far, in seconds. Linux only; empty elsewhere. */
export function cpuOf(stage: Stage, forge: Forge): Record<string, number> {
  if (process.platform !== "linux") return {};
  return {
    "forge-server": totalCpuSeconds(forge.pid),
    Temporal: totalCpuSeconds(stage.temporalPid),
    Postgres: processesIn(stage.postgresFolder).reduce((sum, pid) => sum + totalCpuSeconds(pid), 0),
    "the bare worker": totalCpuSeconds(stage.bareWorkerPid),
    "the load generator": totalCpuSeconds(stage.generator.pid),
  };
}

/** With all threads and child processes that have ended, which the sum over its threads leaves out. */
function totalCpuSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the name: utime, stime, cutime and cstime are fields 14 to 17 of proc_pid_stat(5).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS_PER_S;
  } catch {
    return 0; // It has ended; its parent has its time.
  }
}
