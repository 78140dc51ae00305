import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { cacheDir, checkoutRoot } from "./paths";
import type { Say } from "./say";

const run = promisify(execFile);

/** Pinned in dev/temporal/go.mod too. */
const CLI_VERSION = "1.8.2";

/**
 * Finds the Temporal CLI, whose dev server is the real one, or gets it: TEMPORAL_CLI_PATH, PATH, the
 * cache, a download, a build with Go, whichever comes first.
 */
export async function temporalBinary(say: Say, signal?: AbortSignal): Promise<string> {
  const given = process.env.TEMPORAL_CLI_PATH;
  if (given) return given;
  const onPath = await run("temporal", ["--version"]).then(
    () => "temporal",
    () => undefined,
  );
  if (onPath) return onPath;
  const directory = join(cacheDir(), `temporal-${CLI_VERSION}`);
  const cached = join(directory, "temporal");
  if (existsSync(cached)) return cached;
  mkdirSync(directory, { recursive: true });
  const partial = join(directory, `.temporal-${process.pid}`);
  try {
    if (!(await download(directory, partial, say))) await buildWithGo(partial, say, signal);
    renameSync(partial, cached);
    return cached;
  } finally {
    rmSync(partial, { force: true });
  }
}

async function download(directory: string, target: string, say: Say): Promise<boolean> {
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  const url = `https://temporal.download/cli/archive/v${CLI_VERSION}?platform=${process.platform}&arch=${arch}`;
  const archive = join(directory, `.archive-${process.pid}.tar.gz`);
  try {
    say(`Downloading the Temporal server ${CLI_VERSION} …`);
    const response = await fetch(url, { signal: AbortSignal.timeout(120_000) });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    await writeFile(archive, Buffer.from(await response.arrayBuffer()));
    await run("tar", ["-xzf", archive, "-C", directory, "temporal"]);
    renameSync(join(directory, "temporal"), target);
    return true;
  } catch {
    say("  no download from here");
    return false;
  } finally {
    rmSync(archive, { force: true });
  }
}

async function buildWithGo(target: string, say: Say, signal?: AbortSignal): Promise<void> {
  const started = performance.now();
  say("Building the Temporal server with Go, once: usually 3 to 5 minutes on 2 cores …");
  const go = spawn(
    "go",
    [
      "build",
      "-v",
      "-trimpath",
      "-ldflags=-s -w",
      "-o",
      target,
      "github.com/temporalio/cli/cmd/temporal",
    ],
    {
      cwd: join(checkoutRoot(), "dev", "temporal"),
      stdio: ["ignore", "ignore", "pipe"],
      ...(signal ? { signal } : {}),
    },
  );
  let steps = 0;
  const lastLines: string[] = [];
  // With -v, Go names each module it downloads and each package it compiles.
  createInterface({ input: go.stderr }).on("line", (line) => {
    steps += 1;
    lastLines.push(line);
    if (lastLines.length > 10) lastLines.shift();
  });
  const progress = setInterval(() => {
    const seconds = Math.round((performance.now() - started) / 1000);
    say(`  building Temporal: ${steps} of about 1950 steps, ${seconds} s`);
  }, 10_000);
  try {
    const code = await new Promise<number | null>((resolve) => {
      go.once("error", () => resolve(null));
      go.once("exit", resolve);
    });
    if (code === 0) return;
    signal?.throwIfAborted();
    throw new Error(
      [
        "There is no Temporal server: none on PATH, no download, and no build with Go.",
        "Install the Temporal CLI or Go, or set TEMPORAL_ADDRESS to a server of yours.",
        ...lastLines,
      ].join("\n"),
    );
  } finally {
    clearInterval(progress);
  }
}
