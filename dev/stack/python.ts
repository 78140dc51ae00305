import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { cacheDir, checkoutRoot } from "./paths";
import type { Say } from "./say";

const run = promisify(execFile);

const CANDIDATES = ["python3", "python3.13", "python3.12", "python3.11", "python"];

/** What is installed for what, and how much that is. */
const REQUIREMENTS = {
  runtime: { file: "agent/requirements-runtime.txt", size: "80 MB" },
  train: {
    file: "compute/requirements-train.txt",
    size: "PyTorch: 0.2 GB for CPUs, 3 GB with CUDA",
  },
  tests: { file: "agent/requirements-dev.txt", size: "30 MB" },
  sdk: { file: "sdk/python/requirements.txt", size: "15 MB" },
  terminal: { file: "sdk/python/requirements-terminal.txt", size: "1 MB" },
  contract: { file: "test/contract/requirements.txt", size: "30 MB" },
} as const;

export type PythonNeed = keyof typeof REQUIREMENTS;

/** A Python with our requirements, in a virtual environment outside the checkout. */
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
    const { file, size } = REQUIREMENTS[need];
    // Another version of the list is installed over the former one: PyTorch is not fetched anew for it.
    const marker = join(directory, `.installed-${need}-${digestOf(file)}`);
    if (existsSync(marker)) continue;
    say(`Installing Python packages (${file}; ${size}) …`);
    if (need === "train" && !existsSync("/dev/nvidiactl")) await installTorchForCpu(python, say);
    await pipInstall(python, ["-r", join(checkoutRoot(), file)]);
    writeFileSync(marker, "");
  }
  return python;
}

/** Of a list and those that it refers to. */
function digestOf(file: string): string {
  const text = readFileSync(join(checkoutRoot(), file), "utf8");
  const digest = createHash("sha256").update(text);
  for (const [, other = ""] of text.matchAll(/^-r (.+)$/gm)) {
    digest.update(digestOf(join(dirname(file), other)));
  }
  return digest.digest("hex").slice(0, 16);
}

/**
 * PyTorch's build for CPUs is a fifteenth of the other, but is not where pip looks. uv knows where; where
 * it can't be reached, pip's follows.
 */
async function installTorchForCpu(python: string, say: Say): Promise<void> {
  try {
    await pipInstall(python, ["uv>=0.9"]);
    await run(
      python,
      ["-m", "uv", "pip", "install", "--quiet", "--python", python, "--torch-backend=cpu", "torch"],
      { env: { ...process.env, UV_HTTP_RETRIES: "0", UV_HTTP_TIMEOUT: "15" } },
    );
  } catch {
    say("PyTorch's build for CPUs can't be had here; the one with CUDA runs on CPUs too");
  }
}

/** Where our own Python packages lie, for PYTHONPATH. */
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

async function pipInstall(python: string, what: string[]): Promise<void> {
  const pip = spawn(
    python,
    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...what],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  const code = await new Promise<number | null>((resolve) => pip.once("exit", resolve));
  if (code !== 0) throw new Error(`pip install ${what.join(" ")} failed`);
}
