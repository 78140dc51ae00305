import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "../stack/paths";

/** Seconds that each test file took in its last run on this machine, in any checkout. */
export type FileTimes = Record<string, number>;

const fileOf = (): string => join(cacheDir(), "test-times.json");

export function readTimes(): FileTimes {
  try {
    return JSON.parse(readFileSync(fileOf(), "utf8")) as FileTimes;
  } catch {
    return {};
  }
}

export function writeTimes(times: FileTimes): void {
  mkdirSync(cacheDir(), { recursive: true });
  const partial = `${fileOf()}.${process.pid}`;
  writeFileSync(partial, JSON.stringify({ ...readTimes(), ...times }, null, 1));
  renameSync(partial, fileOf());
}
