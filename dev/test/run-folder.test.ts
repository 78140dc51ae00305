import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTime } from "../stack/process-table";
import { RunFolder } from "./run-folder";

/** A program that goes on for ever, in a group of its own. */
function startIdler(folder: string): number {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], {
    env: { TMPDIR: `${folder}/` },
    detached: true,
    stdio: "ignore",
  });
  return child.pid ?? 0;
}

test("at its end, whatever was started with it has ended, and it is gone", async () => {
  const folder = await RunFolder.make();
  const pid = startIdler(folder.path);
  expect(startTime(pid)).not.toBe("");
  await folder.end();
  expect(startTime(pid)).toBe("");
  expect(existsSync(folder.path)).toBe(false);
});

test("one that takes a while to go is waited for", async () => {
  const folder = await RunFolder.make();
  // Has 1 GB to give back when it is killed; it then has no command line and no environment any more.
  const large = spawn("dd", ["if=/dev/zero", "bs=1G", "count=1"], {
    env: { PATH: process.env.PATH, TMPDIR: `${folder.path}/` },
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(large.stdout, "readable");
  await folder.end();
  expect(startTime(large.pid ?? 0)).toBe("");
});

test("what a killed run left is ended by the next", async () => {
  // Beyond the largest id that a process can have.
  const left = join(tmpdir(), "forge-run-99999999");
  mkdirSync(left);
  const pid = startIdler(left);
  const folder = await RunFolder.make();
  expect(startTime(pid)).toBe("");
  expect(existsSync(left)).toBe(false);
  await folder.end();
});
