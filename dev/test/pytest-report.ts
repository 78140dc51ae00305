import { emptyTally, type Tally, withFailure } from "./tally";

const CASE =
  /<testcase classname="([^"]*)" name="([^"]*)" time="([^"]*)"\s*(?:\/>|>(.*?)<\/testcase>)/gs;
const FAULT = /<(?:failure|error)(?: message="([^"]*)")?/;
const SHOWN_LINES = 10;

/** Reads a tally from pytest's --junitxml report. */
export function tallyPytest(xml: string): Tally {
  let tally = emptyTally("python");
  const seconds = new Map<string, number>();
  for (const [, file = "", test, time, inside = ""] of xml.matchAll(CASE)) {
    seconds.set(file, (seconds.get(file) ?? 0) + Number(time));
    const fault = FAULT.exec(inside);
    if (fault) {
      const message = decoded(fault[1] ?? "")
        .split("\n")
        .slice(0, SHOWN_LINES);
      tally = withFailure(tally, [`${file}: ${test}`, ...message].join("\n  "));
    } else if (inside.includes("<skipped")) tally = { ...tally, skipped: tally.skipped + 1 };
    else tally = { ...tally, passed: tally.passed + 1 };
  }
  const files = [...seconds].map(([path, total]) => ({ path, seconds: total }));
  return { ...tally, files, seconds: files.reduce((sum, each) => sum + each.seconds, 0) };
}

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", quot: '"', amp: "&", "#10": "\n" };

const decoded = (text: string): string =>
  text.replaceAll(/&([a-z]+|#10);/g, (whole, name: string) => ENTITIES[name] ?? whole);
