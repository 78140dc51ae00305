import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDir } from "../stack/paths";
import { sayOnStderr as say } from "../stack/say";
import { runChecks } from "./checks";
import { runQuietly } from "./run";
import { emptyTally, failedTally, type Tally } from "./tally";

const TYPED = ["agent/src", "compute/src", "sdk/python/src", "dev/sample-data"];
const SOURCES = ["agent", "compute", "sdk/python", "dev/sample-data"];

/** Style, types and tests of everything in Python. */
export async function runPython(interpreter: string, lanes: number): Promise<Tally[]> {
  const checks = await runChecks("python lint", interpreter, [
    ["-m", "ruff", "check", ...SOURCES],
    ["-m", "ruff", "format", "--check", ...SOURCES],
    // Shared by all checkouts: unchanged files are not checked again.
    ["-m", "mypy", "--cache-dir", join(cacheDir(), "mypy"), ...TYPED],
  ]);
  return [checks, await runPytest(interpreter, lanes)];
}

const CASE = /<testcase classname="([^"]*)" name="([^"]*)" time="([^"]*)"\s*(?:\/>|>(<\w+)?)/g;

async function runPytest(interpreter: string, lanes: number): Promise<Tally> {
  const folder = mkdtempSync(join(tmpdir(), "forge-pytest-"));
  const report = join(folder, "report.xml");
  try {
    const args = ["-m", "pytest", "-q", "-n", String(lanes), "--dist", "loadfile"];
    const { code, output } = await runQuietly(interpreter, [...args, `--junitxml=${report}`]);
    if (code !== 0) say(output);
    const tally = tallyOf(readFileSync(report, "utf8"));
    // pytest failed without a failed test, or found none.
    const isWrong = tally.failed === 0 && (code !== 0 || tally.passed === 0);
    return isWrong ? failedTally("python", `pytest ended with code ${code}`) : tally;
  } catch (error) {
    return failedTally("python", `pytest left no report: ${String(error)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function tallyOf(report: string): Tally {
  const tally = emptyTally("python");
  const seconds = new Map<string, number>();
  for (const [, file = "", test, time, inside] of report.matchAll(CASE)) {
    seconds.set(file, (seconds.get(file) ?? 0) + Number(time));
    tally.seconds += Number(time);
    if (inside === "<failure" || inside === "<error") {
      tally.failed += 1;
      tally.failures.push(`${file}: ${test}`);
    } else if (inside !== "<skipped") {
      tally.passed += 1;
    }
  }
  tally.files = [...seconds].map(([path, total]) => ({ path, seconds: total }));
  return tally;
}
