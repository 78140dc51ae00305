import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseLock, readLock, withoutTorch } from "../supply-chain/python-locks";
import { cacheDir, checkoutRoot } from "./paths";
import type { Say } from "./say";

const run = promisify(execFile);

/**
 * Options of pip: check every package by its hash, and install only packages that the lock names.
 */
const HASHED = ["--require-hashes", "--no-deps"];

const CANDIDATES = ["python3", "python3.13", "python3.12", "python3.11", "python"];

/** Download size of the packages in each lock file (`npm run lock:python`). */
const SIZES = {
  runtime: "80 MB",
  train: "PyTorch: 0.2 GB for CPUs, 3 GB with CUDA",
  tests: "30 MB",
  sdk: "15 MB",
  terminal: "1 MB",
  contract: "30 MB",
  uv: "25 MB",
  audit: "10 MB",
} as const;

export type PythonNeed = keyof typeof SIZES;

/**
 * Returns the path of a Python with the packages of `needs`, in a virtual environment outside the
 * checkout.
 */
export async function pythonEnvironment(
  say: Say,
  needs: PythonNeed[] = ["runtime"],
): Promise<string> {
  const directory = join(cacheDir(), "python");
  const python = join(directory, "bin", "python");
  if (!existsSync(join(directory, ".created"))) {
    say("Creating a Python environment …");
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    await createVenv(await findPython(), directory);
    writeFileSync(join(directory, ".created"), "");
  }
  for (const need of needs) {
    const lock = readLock(need);
    // After a lock file has changed, install it into the same environment. Unchanged packages, such
    // as PyTorch, are then not downloaded again.
    const marker = join(directory, `.locked-${need}-${digestOf(lock)}`);
    if (existsSync(marker)) continue;
    say(`Installing Python packages (requirements/${need}.txt; ${SIZES[need]}) …`);
    const hasCpuTorch =
      need === "train" && !existsSync("/dev/nvidiactl") && (await installTorchForCpu(python, say));
    await pipInstall(python, hasCpuTorch ? withoutTorch(lock) : lock);
    writeFileSync(marker, "");
  }
  return python;
}

const digestOf = (text: string): string =>
  createHash("sha256").update(text).digest("hex").slice(0, 16);

/**
 * Installs PyTorch's CPU build in the locked version. This build has a fifteenth of the size of the
 * CUDA build. It is in a separate package index, which uv knows and pip does not. If that index
 * can't be reached, the caller installs the CUDA build with pip. The lock has no hashes of the CPU
 * build's files, so they are authenticated by TLS only.
 *
 * @returns whether PyTorch without CUDA is installed.
 */
async function installTorchForCpu(python: string, say: Say): Promise<boolean> {
  const locked = parseLock(readLock("train")).find(({ name }) => name === "torch");
  try {
    await pipInstall(python, readLock("uv"));
    const wanted = `torch==${locked?.version}`;
    await run(
      python,
      ["-m", "uv", "pip", "install", "--quiet", "--python", python, "--torch-backend=cpu", wanted],
      { env: { ...process.env, UV_HTTP_RETRIES: "0", UV_HTTP_TIMEOUT: "15" } },
    );
    return await run(python, ["-c", "import torch; assert torch.version.cuda is None"]).then(
      () => true,
      () => false,
    );
  } catch {
    say("PyTorch's CPU build can't be downloaded; using the CUDA build, which runs on CPUs too");
    return false;
  }
}

/** Folders of our own Python packages, for PYTHONPATH. */
export function pythonPath(): string {
  const packages = ["agent", "compute", join("sdk", "python")];
  return packages.map((directory) => join(checkoutRoot(), directory, "src")).join(":");
}

async function findPython(): Promise<string> {
  for (const candidate of CANDIDATES) {
    const isNewEnough = await run(candidate, [
      "-c",
      "import sys; sys.exit(sys.version_info < (3, 11))",
    ]).then(
      () => true,
      () => false,
    );
    if (isNewEnough) return candidate;
  }
  throw new Error("Forge's agent needs Python 3.11 or newer; none was found on PATH");
}

async function createVenv(python: string, directory: string): Promise<void> {
  await run(python, ["-m", "venv", directory]).catch((error: Error) => {
    throw new Error(`${error.message}\nOn Debian and Ubuntu: apt-get install python3-venv`);
  });
}

/** Installs the packages of a lock file. Checks the hash of each downloaded file. */
async function pipInstall(python: string, lock: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "forge-python-"));
  try {
    const file = join(folder, "requirements.txt");
    writeFileSync(file, lock);
    const pip = spawn(
      python,
      ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...HASHED, "-r", file],
      { stdio: ["ignore", "inherit", "inherit"] },
    );
    const code = await new Promise<number | null>((resolve) => pip.once("exit", resolve));
    if (code !== 0) throw new Error(`pip install failed:\n${lock.split("\n", 1)[0]}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
