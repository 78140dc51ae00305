import { relative } from "node:path";
import Sequencer from "@jest/test-sequencer";
import { checkoutRoot } from "../stack/paths";
import { readTimes } from "./times";

type Tests = Parameters<Sequencer["sort"]>[0];

/** Estimated seconds of a test file without a recorded time. The first matching pattern applies. */
const UNKNOWN_S: [RegExp, number][] = [
  [/^test\/(faults|slow)\//, 60],
  [/^test\//, 20],
];

/**
 * Sorts longest first, by the times of the last run, so that all worker processes of jest finish at
 * about the same time.
 */
class LongestFirst extends Sequencer {
  override sort(tests: Tests): Tests {
    const times = readTimes();
    const secondsOf = ({ path }: Tests[number]): number => {
      const file = relative(checkoutRoot(), path);
      return times[file] ?? UNKNOWN_S.find(([pattern]) => pattern.test(file))?.[1] ?? 1;
    };
    return [...tests].sort((a, b) => secondsOf(b) - secondsOf(a));
  }
}

// Jest expects the class itself as the module.
module.exports = LongestFirst;
