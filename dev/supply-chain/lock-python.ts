import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkoutRoot } from "../stack/paths";
import { pythonEnvironment } from "../stack/python";
import { sayOnStderr as say } from "../stack/say";
import { LOCK_NAMES, LOCKS, lockHeader, lockPath } from "./python-locks";

const run = promisify(execFile);

/**
 * Options of uv. With these options, a lock names no package index, so it does not depend on this
 * machine.
 */
const OPTIONS = ["--universal", "--python-version=3.11", "--no-header", "--no-annotate", "--quiet"];

/**
 * `npm run lock:python`: locks the newest versions that the requirements allow, for every platform.
 * First resolves all requirements files together, because their packages are installed into one
 * environment. Then writes one lock for each requirements file.
 */
async function main(): Promise<void> {
  const python = await pythonEnvironment(say, ["uv"]);
  const folder = mkdtempSync(join(tmpdir(), "forge-locks-"));
  const compile = async (output: string, ...args: string[]): Promise<void> => {
    await run(python, ["-m", "uv", "pip", "compile", ...OPTIONS, ...args, "-o", output], {
      cwd: checkoutRoot(),
    });
  };
  try {
    const common = join(folder, "all.txt");
    await compile(common, ...LOCK_NAMES.map((name) => LOCKS[name]));
    for (const name of LOCK_NAMES) {
      const output = join(folder, `${name}.txt`);
      await compile(output, "--generate-hashes", "-c", common, LOCKS[name]);
      writeFileSync(lockPath(name), lockHeader(name) + readFileSync(output, "utf8"));
      say(`wrote requirements/${name}.txt`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exit(1);
});
