import { relative } from "node:path";
import Sequencer from "@jest/test-sequencer";
import { checkoutRoot } from "../stack/paths";
import { readTimes } from "./times";

type Tests = Parameters<Sequencer["sort"]>[0];

/** Files that have a server run for longer than those that have none. */
const UNKNOWN_S: [RegExp, number][] = [
  [/^test\/(faults|slow)\//, 60],
  [/^test\//, 20],
];

/** Longest first, by the last run's times: what is begun last must be short, for all lanes to end together. */
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

// Jest takes what the module is.
module.exports = LongestFirst;
