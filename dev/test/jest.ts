import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDir, checkoutRoot } from "../stack/paths";
import { sayOnStderr as say } from "../stack/say";
import { type JestReport, tallySuite } from "./jest-report";
import { FEWER_COLLECTIONS } from "./node-options";
import { runHere } from "./run";
import { failedTally, type Tally } from "./tally";

export interface JestRun {
  /** Folders or path prefixes of each suite. */
  suites: Record<string, string[]>;
  /** Files to run at once. */
  lanes: number;
  env: Record<string, string>;
}

/** Runs all files of some suites in one run of jest, longest first. Returns a tally for each suite. */
export async function runJest({ suites, lanes, env }: JestRun): Promise<Tally[]> {
  const evidence = evidenceFolder();
  const file = join(evidence, "report.json");
  const names = Object.keys(suites);
  try {
    const args = [
      // Inherited by its workers.
      FEWER_COLLECTIONS,
      "node_modules/jest/bin/jest.js",
      "--json",
      `--outputFile=${file}`,
      `--maxWorkers=${lanes}`,
      `--cacheDirectory=${join(cacheDir(), "jest")}`,
      `--testSequencer=${join(checkoutRoot(), "dist/dev/test/sequencer.js")}`,
      // Absolute, because jest matches patterns anywhere in a path: "dev/" may be in the checkout's own.
      ...Object.values(suites)
        .flat()
        .map((path) => escaped(join(checkoutRoot(), path))),
    ];
    const { code } = await runHere(process.execPath, args, { ...env, TEST_EVIDENCE_DIR: evidence });
    const report = JSON.parse(readFileSync(file, "utf8")) as JestReport;
    const tallies = names.map((name) =>
      tallySuite(name, suites[name] ?? [], report, checkoutRoot()),
    );
    const isTold = tallies.some(({ failed }) => failed > 0);
    if (code !== 0) say(`The logs of the files' servers are in ${evidence}`);
    return code === 0 || isTold
      ? tallies
      : [...tallies, failedTally("jest", `jest ended with code ${code}, and no test failed`)];
  } catch (error) {
    return [failedTally(names.join(", "), `jest left no report: ${String(error)}`)];
  }
}

const KEPT_RUNS = 3;

/** A new folder for what test files leave behind (test/support/evidence.ts); older ones go. */
function evidenceFolder(): string {
  const root = join(cacheDir(), "test-evidence");
  mkdirSync(root, { recursive: true });
  const old = readdirSync(root).sort().slice(0, -KEPT_RUNS);
  for (const name of old) rmSync(join(root, name), { recursive: true, force: true });
  const folder = join(root, `${new Date().toISOString().replaceAll(":", "-")}-${process.pid}`);
  mkdirSync(folder);
  return folder;
}

/** Jest takes paths as regular expressions. */
const escaped = (path: string): string => path.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
