import { readFileSync } from "node:fs";

/** Fields of proc_pid_stat(5), from the third on. Linux only. @throws if the process has ended. */
export function fieldsOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field, a name in parentheses, may contain spaces.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
