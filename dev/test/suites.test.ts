import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { checkoutRoot } from "../stack/paths";
import { checkRunTime } from "./report";
import { IN_JEST, MEASURED, SLOW } from "./suites";

const NOT_OURS = ["node_modules", "dist", ".git"];

function* testFiles(folder = checkoutRoot()): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !NOT_OURS.includes(entry.name)) yield* testFiles(path);
    else if (entry.name.endsWith(".test.ts")) yield relative(checkoutRoot(), path);
  }
}

test("every test file belongs to a suite", () => {
  const prefixes = [...Object.values(IN_JEST).flat(), ...SLOW, ...MEASURED];
  const files = [...testFiles()];
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter((file) => !prefixes.some((prefix) => file.startsWith(prefix)))).toEqual([]);
});

/** Matches the source of a test file that has a long form for `npm run test:slow`. */
const HAS_LONG_FORM = /TEST_SLOW|support\/slow"|\bFORMS\b|\bDIFFERENT_CLIENTS\b/;

test("every test file with a long form is in npm run test:slow", () => {
  const files = [...testFiles()].filter((file) => file !== "dev/test/suites.test.ts");
  const long = files.filter((file) =>
    HAS_LONG_FORM.test(readFileSync(join(checkoutRoot(), file), "utf8")),
  );
  expect(long.length).toBeGreaterThan(30);
  expect(long.filter((file) => !SLOW.some((prefix) => file.startsWith(prefix)))).toEqual([]);
});

test("a run fails when it takes more than twice its budget", () => {
  expect(checkRunTime(1200, false)).toMatchObject({ passed: 1, failed: 0 });
  expect(checkRunTime(1201, false)).toMatchObject({ passed: 0, failed: 1 });
});

test("the first run on a machine may take twice as long", () => {
  expect(checkRunTime(2400, true)).toMatchObject({ passed: 1, failed: 0 });
  expect(checkRunTime(2401, true)).toMatchObject({ passed: 0, failed: 1 });
});
