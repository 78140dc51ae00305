import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { fieldsOf } from "../../platform/process-fields";

/**
 * The start time of a process, in a system-specific format; "" if it does not exist. Process ids
 * are reused, so id and start time together identify a process.
 */
export function startTime(pid: number): string {
  try {
    if (process.platform === "linux") {
      const fields = fieldsOf(pid);
      // A zombie process has ended but is still listed.
      return fields[0] === "Z" ? "" : (fields[19] ?? "");
    }
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return "";
  }
}

/** The parent and the session of a process; 0 and "" if it does not exist. Linux only. */
export function parentAndSession(pid: number): { parent: number; session: string } {
  try {
    const fields = fieldsOf(pid);
    return { parent: Number(fields[1]), session: fields[3] ?? "" };
  } catch {
    return { parent: 0, session: "" };
  }
}

/** PF_KTHREAD of Linux's include/linux/sched.h. */
const KERNEL_THREAD = 0x00200000;
const isKernelThread = (pid: number): boolean => (Number(fieldsOf(pid)[6]) & KERNEL_THREAD) !== 0;

/**
 * The processes that have `directory` as their working directory, such as all processes of a
 * Postgres server. Linux only.
 */
export const processesIn = (directory: string): number[] =>
  processesOfWhich((pid) => readlinkSync(`/proc/${pid}/cwd`) === directory);

/** Other processes whose command line or environment contains the directory's path. Linux only. */
export const processesMentioning = (directory: string): number[] =>
  processesOfWhich((pid) =>
    ["cmdline", "environ"].some((file) =>
      readFileSync(`/proc/${pid}/${file}`, "utf8").includes(directory),
    ),
  ).filter((pid) => pid !== process.pid);

/** Child processes of `parent` whose command line contains `command`. Linux only. */
export const childrenRunning = (parent: number | undefined, command: string): number[] =>
  processesOfWhich(
    (pid) =>
      Number(fieldsOf(pid)[1]) === parent &&
      readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(command),
  );

/** Processes that are starting: they have no command and no environment yet. Linux only. */
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
        return false; // the process has ended, or we may not read its files
      }
    });
}
