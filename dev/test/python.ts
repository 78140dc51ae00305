import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDir } from "../stack/paths";
import { sayOnStderr as say } from "../stack/say";
import { runChecks } from "./checks";
import { tallyPytest } from "./pytest-report";
import { runQuietly } from "./run";
import { failedTally, type Tally, withFailure } from "./tally";

const TYPED = ["agent/src", "compute/src", "sdk/python/src", "dev/sample-data"];
const LAST_LINES = 20;
const SOURCES = ["agent", "compute", "sdk/python", "dev/sample-data"];

/** Checks style and types, and runs the tests, of all Python code. */
export async function runPython(interpreter: string): Promise<Tally[]> {
  const checks = await runChecks("python lint", interpreter, [
    ["-m", "ruff", "check", ...SOURCES],
    ["-m", "ruff", "format", "--check", ...SOURCES],
    // The cache is shared by all checkouts.
    ["-m", "mypy", "--cache-dir", join(cacheDir(), "mypy"), ...TYPED],
  ]);
  return [checks, await runPytest(interpreter)];
}

async function runPytest(interpreter: string): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), "forge-pytest-"));
  const report = join(folder, "report.xml");
  try {
    const args = ["-m", "pytest", "-q", `--junitxml=${report}`];
    const { code, output } = await runQuietly(interpreter, args);
    if (code !== 0) say(output);
    const tally = tallyPytest(readFileSync(report, "utf8"));
    // pytest failed without a failed test, or found no tests.
    const isWrong = tally.failed === 0 && (code !== 0 || tally.passed === 0);
    if (!isWrong) return tally;
    const lastLines = output.trim().split("\n").slice(-LAST_LINES).join("\n  ");
    return withFailure(tally, `pytest exited with code ${code}\n  ${lastLines}`);
  } catch (error) {
    return failedTally("python", `pytest wrote no report: ${String(error)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
