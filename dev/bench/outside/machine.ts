import { execFileSync } from "node:child_process";
import { arch, cpus, loadavg, release, totalmem, type } from "node:os";
import { checkoutRoot } from "../../stack/paths";

export interface Facts {
  commit: string;
  date: string;
  cpu: string;
  cores: number;
  memoryGib: number;
  system: string;
  node: string;
  postgres: string;
  temporal: string;
  /** Load average of the minute before the start. Above 0.5, other programs affect the results. */
  loadBefore: number;
}

/** Describes this machine and the checkout. @param versions of the servers. */
export function factsOf(versions: Pick<Facts, "postgres" | "temporal">): Omit<Facts, "loadBefore"> {
  const git = (...args: string[]): string =>
    execFileSync("git", args, { cwd: checkoutRoot(), encoding: "utf8" }).trim();
  const changed = git("status", "--porcelain") === "" ? "" : " with changes";
  return {
    commit: `${git("rev-parse", "--short=12", "HEAD")}${changed}`,
    date: new Date().toISOString().slice(0, 10),
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()} ${arch()}`,
    node: process.version,
    ...versions,
  };
}

export const currentLoad = (): number => loadavg()[0] ?? Number.NaN;
