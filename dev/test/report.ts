import { availableParallelism } from "node:os";
import { sayOnStderr as say } from "../stack/say";
import { emptyTally, failedTally, type Tally } from "./tally";
import { writeTimes } from "./times";

const SLOWEST = 10;

/**
 * Target times of `npm test` on two cores, without installation. The first run on a machine has no
 * caches of jest, mypy and Python, and no recorded times of files. A run fails at twice its target,
 * because the time depends on other load on the host: on a virtual machine, it was between 790 and
 * 1,145 s within a day.
 */
const BUDGET_S = { first: 1200, later: 600 };
const TOLERANCE = 2;

/** Checks the total time of a run. Counts as one test. */
export function checkRunTime(seconds: number, isFirst: boolean): Tally {
  const target = isFirst ? BUDGET_S.first : BUDGET_S.later;
  const holds = availableParallelism() < 2 || seconds <= target * TOLERANCE;
  const failure = `the suites took ${Math.round(seconds)} s; the limit is ${target * TOLERANCE} s on two cores`;
  return holds ? { ...emptyTally("budget"), passed: 1 } : failedTally("budget", failure);
}

/**
 * Saves the times of the files, for the order of the next run. Leaves out suites that failed,
 * because a file that fails early takes less time than it usually does.
 */
export function keepTimes(tallies: Tally[]): void {
  const files = tallies.flatMap(({ files: each, failed }) => (failed > 0 ? [] : each));
  writeTimes(Object.fromEntries(files.map(({ path, seconds }) => [path, round(seconds)])));
}

/** Prints the slowest files, each suite, all failures, and the line of totals. */
export function report(tallies: Tally[], seconds: number): void {
  const files = tallies.flatMap(({ files: each }) => each).sort((a, b) => b.seconds - a.seconds);
  if (files.length > 0) say(`\nThe ${SLOWEST} slowest files`);
  for (const { path, seconds: took } of files.slice(0, SLOWEST)) say(`${inS(took)}  ${path}`);
  say("\nSuites, with the total time of their files");
  for (const { suite, passed, failed, skipped, seconds: took } of tallies) {
    const more = skipped > 0 ? `, ${skipped} skipped` : "";
    say(`${inS(took)}  ${suite}: ${passed} passed, ${failed} failed${more}`);
  }
  say(`${inS(seconds)}  elapsed`);
  for (const { suite, failures } of tallies) {
    for (const failure of failures) say(`\nFAILED ${suite}: ${failure}`);
  }
  const passed = tallies.reduce((sum, tally) => sum + tally.passed, 0);
  const failed = tallies.reduce((sum, tally) => sum + tally.failed, 0);
  process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}

const round = (seconds: number): number => Math.round(seconds * 10) / 10;
const inS = (seconds: number): string => `${seconds.toFixed(1).padStart(8)} s`;
