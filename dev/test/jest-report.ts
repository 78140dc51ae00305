import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { emptyTally, type Tally, withFailure } from "./tally";

/** The parts of jest's --json report that are read here. */
export interface JestReport {
  testResults: FileResult[];
}

interface FileResult {
  /** Absolute path. */
  name: string;
  /** Why the file failed, including failures of tests and hooks; empty if it passed. */
  message: string;
  startTime: number;
  endTime: number;
  assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
}

const SHOWN_LINES = 20;

/**
 * Counts the results of a suite's test files, whose paths begin with one of `folders`. A suite in
 * which no test ran counts as failed.
 */
export function tallySuite(
  suite: string,
  folders: string[],
  { testResults }: JestReport,
  root: string,
): Tally {
  let tally = emptyTally(suite);
  for (const result of testResults) {
    const path = relative(root, result.name);
    if (folders.some((folder) => path.startsWith(folder))) tally = addFile(tally, path, result);
  }
  return tally.passed + tally.failed > 0 ? tally : withFailure(tally, "no test ran");
}

function addFile(before: Tally, path: string, result: FileResult): Tally {
  const { message, assertionResults: tests } = result;
  const count = (...statuses: string[]): number =>
    tests.filter(({ status }) => statuses.includes(status)).length;
  const seconds = (result.endTime - result.startTime) / 1000;
  let tally = {
    ...before,
    passed: before.passed + count("passed"),
    skipped: before.skipped + count("pending", "skipped", "todo", "disabled"),
    files: [...before.files, { path, seconds }],
    seconds: before.seconds + seconds,
  };
  for (const { fullName, status, failureMessages } of tests) {
    if (status !== "failed") continue;
    tally = withFailure(tally, inShort(`${path}: ${fullName}`, failureMessages.join("\n")));
  }
  // If the file could not be loaded, or one of its hooks failed, no test reports the failure.
  if (count("failed") === 0 && message !== "") tally = withFailure(tally, inShort(path, message));
  return tally;
}

const inShort = (name: string, message: string): string => {
  const lines = stripVTControlCharacters(message).trim().split("\n");
  return [name, ...lines.slice(0, SHOWN_LINES)].join("\n  ");
};
