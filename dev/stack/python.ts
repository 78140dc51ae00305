import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDir, checkoutRoot } from "./paths";
import type { Say } from "./say";

const run = promisify(execFile);

const CANDIDATES = ["python3", "python3.13", "python3.12", "python3.11", "python"];

/** What the agent and the reference handlers need; their tests; the contract's. */
const REQUIREMENTS = {
  runtime: "agent/requirements.txt",
  tests: "agent/requirements-dev.txt",
  contract: "test/contract/requirements.txt",
} as const;

/** A Python with our requirements, in a virtual environment outside the checkout. */
export async function pythonEnvironment(
  say: Say,
  needs: (keyof typeof REQUIREMENTS)[] = ["runtime"],
): Promise<string> {
  const files = Object.values(REQUIREMENTS).map((file) => join(checkoutRoot(), file));
  const digest = createHash("sha256");
  for (const file of files) digest.update(readFileSync(file));
  const directory = join(cacheDir(), `python-${digest.digest("hex").slice(0, 16)}`);
  const python = join(directory, "bin", "python");
  if (!existsSync(join(directory, ".created"))) {
    say("Creating a Python environment …");
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true });
    await createVenv(await findPython(), directory);
    writeFileSync(join(directory, ".created"), "");
  }
  for (const need of needs) {
    const marker = join(directory, `.installed-${need}`);
    if (existsSync(marker)) continue;
    say(`Installing Python packages (${REQUIREMENTS[need]}; with pyarrow 50 MB) …`);
    await pipInstall(python, join(checkoutRoot(), REQUIREMENTS[need]));
    writeFileSync(marker, "");
  }
  return python;
}

/** Where our own Python packages lie, for PYTHONPATH. */
export function pythonPath(): string {
  return [join(checkoutRoot(), "agent", "src"), join(checkoutRoot(), "compute", "src")].join(":");
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

async function pipInstall(python: string, requirements: string): Promise<void> {
  const pip = spawn(
    python,
    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements],
    {
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  const code = await new Promise<number | null>((resolve) => pip.once("exit", resolve));
  if (code !== 0) throw new Error(`pip install -r ${requirements} failed`);
}
