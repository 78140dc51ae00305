import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, checkoutRoot } from "../stack/paths";
import { startTime } from "../stack/process-table";
import { sayOnStderr as say } from "../stack/say";
import { type JestReport, tallySuite } from "./jest-report";
import { FEWER_COLLECTIONS } from "./node-options";
import { runInherited } from "./run";
import { failedTally, type Tally } from "./tally";

export interface JestRun {
  /** Folders or path prefixes of each suite. */
  suites: Record<string, string[]>;
  /** Number of files to run concurrently. */
  lanes: number;
  env: Record<string, string>;
}

/** Runs all files of the suites in one jest run, longest first. Returns a tally for each suite. */
export async function runJest({ suites, lanes, env }: JestRun): Promise<Tally[]> {
  const evidence = evidenceFolder();
  const file = join(evidence, "report.json");
  const names = Object.keys(suites);
  try {
    const args = [
      // Jest's worker processes inherit this option.
      FEWER_COLLECTIONS,
      "node_modules/jest/bin/jest.js",
      "--json",
      `--outputFile=${file}`,
      `--maxWorkers=${lanes}`,
      `--cacheDirectory=${join(cacheDir(), "jest")}`,
      `--testSequencer=${join(checkoutRoot(), "dist/dev/test/sequencer.js")}`,
      // Absolute paths: jest matches a pattern anywhere in a path, and the path of the checkout may
      // itself contain "dev/".
      ...Object.values(suites)
        .flat()
        .map((path) => escaped(join(checkoutRoot(), path))),
    ];
    const { code } = await runInherited(process.execPath, args, {
      ...env,
      TEST_EVIDENCE_DIR: evidence,
    });
    const report = JSON.parse(readFileSync(file, "utf8")) as JestReport;
    const tallies = names.map((name) =>
      tallySuite(name, suites[name] ?? [], report, checkoutRoot()),
    );
    const isReported = tallies.some(({ failed }) => failed > 0);
    if (code !== 0) say(`Logs of the servers: ${evidence}`);
    return code === 0 || isReported
      ? tallies
      : [...tallies, failedTally("jest", `jest exited with code ${code}, but no test failed`)];
  } catch (error) {
    return [failedTally(names.join(", "), `jest wrote no report: ${String(error)}`)];
  }
}

const KEPT_RUNS = 3;

/**
 * Creates a folder for the logs of test files (test/support/evidence.ts), and removes older ones.
 */
function evidenceFolder(): string {
  const root = join(cacheDir(), "test-evidence");
  mkdirSync(root, { recursive: true });
  const old = readdirSync(root).sort().slice(0, -KEPT_RUNS);
  // Keep the folder of a run that has not ended: it still writes its report there.
  const ended = old.filter((name) => {
    const pid = Number(/-(\d+)$/.exec(name)?.[1]);
    return pid === process.pid || startTime(pid) === "";
  });
  for (const name of ended) rmSync(join(root, name), { recursive: true, force: true });
  const folder = join(root, `${new Date().toISOString().replaceAll(":", "-")}-${process.pid}`);
  mkdirSync(folder);
  return folder;
}

/** Jest reads paths as regular expressions. */
const escaped = (path: string): string => path.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
