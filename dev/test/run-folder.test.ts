import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTime } from "../stack/process-table";
import { RunFolder } from "./run-folder";

/** Starts a program that never ends, in its own process group. */
function startIdler(folder: string): number {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], {
    env: { TMPDIR: `${folder}/` },
    detached: true,
    stdio: "ignore",
  });
  return child.pid ?? 0;
}

test("end() ends all processes that use the folder, and removes it", async () => {
  const folder = await RunFolder.make();
  const pid = startIdler(folder.path);
  expect(startTime(pid)).not.toBe("");
  await folder.end();
  expect(startTime(pid)).toBe("");
  expect(existsSync(folder.path)).toBe(false);
});

test("end() waits for a process that takes a while to end", async () => {
  const folder = await RunFolder.make();
  // A killed `dd` takes a while to free its 1 GB. Meanwhile it has no environment, so `end()` can't
  // find it by its TMPDIR any more. `end()` must have stored its process id.
  const large = spawn("dd", ["if=/dev/zero", "bs=1G", "count=1"], {
    env: { PATH: process.env.PATH, TMPDIR: `${folder.path}/` },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(large.stdout, "readable");
  await folder.end();
  expect(startTime(large.pid ?? 0)).toBe("");
});

test("the next run ends processes of a killed run", async () => {
  // The folder's name contains the process id of its run. No process can have an id as large as
  // 99999999, so RunFolder considers the run ended.
  const left = join(tmpdir(), "forge-run-99999999");
  mkdirSync(left);
  const pid = startIdler(left);
  const folder = await RunFolder.make();
  expect(startTime(pid)).toBe("");
  expect(existsSync(left)).toBe(false);
  await folder.end();
});
