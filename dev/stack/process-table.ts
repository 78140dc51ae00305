import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/**
 * When a process started, in its system's own words; "" if there is none. Ids alone are used again.
 */
export function startTime(pid: number): string {
  try {
    if (process.platform === "linux") {
      const fields = fieldsOf(pid);
      // One that has ended, and that nobody has waited for, is still listed.
      return fields[0] === "Z" ? "" : (fields[19] ?? "");
    }
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}

/** Of proc_pid_stat(5), from the 3rd on. Linux only. */
export function fieldsOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The 2nd, a name in parentheses, may itself contain blanks.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** PF_KTHREAD of Linux' include/linux/sched.h. */
const KERNEL_THREAD = 0x00200000;
const isKernelThread = (pid: number): boolean => (Number(fieldsOf(pid)[6]) & KERNEL_THREAD) !== 0;

/** Processes that work in a directory, as all of Postgres' do in its data directory. Linux only. */
export const processesIn = (directory: string): number[] =>
  processesOfWhich((pid) => readlinkSync(`/proc/${pid}/cwd`) === directory);

/** Other processes whose command or environment names a path below a directory. Linux only. */
export const processesNaming = (directory: string): number[] =>
  processesOfWhich((pid) =>
    ["cmdline", "environ"].some((file) =>
      readFileSync(`/proc/${pid}/${file}`, "utf8").includes(directory),
    ),
  ).filter((pid) => pid !== process.pid);

/** Processes that begin to run their program: they have no command and no environment yet. Linux only. */
export const processesStarting = (): number[] =>
  processesOfWhich(
    (pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8") === "" && !isKernelThread(pid),
  );

function processesOfWhich(holds: (pid: number) => boolean): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return holds(pid) && startTime(pid) !== "";
      } catch {
        return false; // it ended meanwhile, or is not ours to look at
      }
    });
}
