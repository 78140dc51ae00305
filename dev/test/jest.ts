import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { cacheDir, checkoutRoot } from "../stack/paths";
import { runHere } from "./run";
import { emptyTally, failedTally, type Tally } from "./tally";

/** Where the last run's test files leave their servers' logs, and the histories of a failed proof. */
const EVIDENCE = join(cacheDir(), "test-evidence");

interface JestReport {
  testResults: {
    name: string;
    message: string;
    startTime: number;
    endTime: number;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

export interface JestRun {
  /** Folders or path prefixes of each suite. */
  suites: Record<string, string[]>;
  /** Files to run at once. */
  lanes: number;
  env: Record<string, string>;
}

/** Runs all files of some suites in one run of jest, longest first. Returns a tally for each suite. */
export async function runJest({ suites, lanes, env }: JestRun): Promise<Tally[]> {
  const folder = mkdtempSync(join(tmpdir(), "forge-jest-"));
  const report = join(folder, "report.json");
  const names = Object.keys(suites);
  try {
    const args = [
      // Inherited by its workers. New objects are collected less often, which takes a tenth of their time.
      "--min-semi-space-size=16",
      "node_modules/jest/bin/jest.js",
      "--json",
      `--outputFile=${report}`,
      `--maxWorkers=${lanes}`,
      `--testSequencer=${join(checkoutRoot(), "dist/dev/test/sequencer.js")}`,
      // Absolute, because jest matches patterns anywhere in a path: "dev/" may be in the checkout's own.
      ...Object.values(suites)
        .flat()
        .map((path) => join(checkoutRoot(), path)),
    ];
    rmSync(EVIDENCE, { recursive: true, force: true });
    await runHere(process.execPath, args, { ...env, TEST_EVIDENCE_DIR: EVIDENCE });
    const { testResults } = JSON.parse(readFileSync(report, "utf8")) as JestReport;
    return names.map((name) => tallyOf(name, suites[name] ?? [], testResults));
  } catch (error) {
    return [failedTally(names.join(", "), `jest left no report: ${String(error)}`)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function tallyOf(suite: string, folders: string[], results: JestReport["testResults"]): Tally {
  const tally = emptyTally(suite);
  for (const { name, message, startTime, endTime, assertionResults } of results) {
    const path = relative(checkoutRoot(), name);
    if (!folders.some((folder) => path.startsWith(folder))) continue;
    const seconds = (endTime - startTime) / 1000;
    tally.files.push({ path, seconds });
    tally.seconds += seconds;
    const failed = assertionResults.filter(({ status }) => status === "failed");
    tally.passed += assertionResults.filter(({ status }) => status === "passed").length;
    tally.failed += failed.length;
    for (const { fullName, failureMessages } of failed) {
      tally.failures.push(inShort(`${path}: ${fullName}`, failureMessages.join("\n")));
    }
    // The file could not be loaded.
    if (failed.length === 0 && message !== "" && assertionResults.length === 0) {
      tally.failed += 1;
      tally.failures.push(inShort(path, message));
    }
  }
  return tally;
}

const inShort = (name: string, message: string): string =>
  [name, ...stripVTControlCharacters(message).trim().split("\n").slice(0, 20)].join("\n  ");
