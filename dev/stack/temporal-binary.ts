import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { downloadChecked } from "./checked-download";
import { cacheDir, checkoutRoot } from "./paths";
import type { Say } from "./say";

const run = promisify(execFile);

/** Must match dev/temporal/go.mod. */
const CLI_VERSION = "1.8.2";

/**
 * SHA-256 of the archives of the CLI release, from checksums.txt in the same release. On a platform
 * that is not listed here, the CLI is built with Go, which checks every module against
 * dev/temporal/go.sum.
 */
const CHECKSUMS: Record<string, string> = {
  linux_amd64: "d8421bda989e6514b4bdb4d63a9012a8a05a806892e881a5aad8510496349a94",
  linux_arm64: "83600a8fac6e3da54093e5da6918d399f501532b9f1172235603f9606f4ac6e4",
  darwin_amd64: "489d7f5420cae02b559774ac23df035141954c33a51dba96f5759a0ddccdf1b6",
  darwin_arm64: "dacdc3587682c04cf27e67c8878ca2d755230b6ad63c0c6ebddd7348ae90ed94",
};

/**
 * Returns the Temporal CLI, whose dev server is a real Temporal server. Tries in this order:
 * TEMPORAL_CLI_PATH, PATH, the cache, a download, a build with Go.
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
  const platform = `${process.platform}_${arch}`;
  const checksum = CHECKSUMS[platform];
  if (checksum === undefined) return false;
  const url = `https://github.com/temporalio/cli/releases/download/v${CLI_VERSION}/temporal_cli_${CLI_VERSION}_${platform}.tar.gz`;
  const archive = join(directory, `.archive-${process.pid}.tar.gz`);
  try {
    say(`Downloading the Temporal server ${CLI_VERSION} …`);
    await downloadChecked(url, checksum, archive);
    await run("tar", ["-xzf", archive, "-C", directory, "temporal"]);
    renameSync(join(directory, "temporal"), target);
    return true;
  } catch (error) {
    say(`  download failed: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  } finally {
    rmSync(archive, { force: true });
  }
}

async function buildWithGo(target: string, say: Say, signal?: AbortSignal): Promise<void> {
  const started = performance.now();
  say("Building the Temporal server with Go (once, usually 3 to 5 minutes on 2 cores) …");
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
        "No Temporal server: the CLI is not on PATH, and both the download and the build with Go failed.",
        "Install the Temporal CLI or Go, or set TEMPORAL_ADDRESS to a running server.",
        ...lastLines,
      ].join("\n"),
    );
  } finally {
    clearInterval(progress);
  }
}
