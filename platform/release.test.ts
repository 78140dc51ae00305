import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MIN_CLIENT_RELEASE, RELEASE } from "./release";

const ROOT = join(__dirname, "..");

test.each([
  ["package.json", /^ {2}"version": "(.*)"/m],
  ["agent/pyproject.toml", /^version = "(.*)"/m],
  ["agent/src/forge_agent/__init__.py", /^__version__ = "(.*)"/m],
  ["sdk/typescript/package.json", /^ {2}"version": "(.*)"/m],
  ["sdk/typescript/src/version.ts", /^export const VERSION = "(.*)"/m],
  ["sdk/python/pyproject.toml", /^version = "(.*)"/m],
  ["sdk/python/src/forge/_version.py", /^__version__ = "(.*)"/m],
])("%s has the version of this release", (file, version) => {
  expect(version.exec(readFileSync(join(ROOT, file), "utf8"))?.[1]).toBe(RELEASE);
});

test("clients one minor version back are supported", () => {
  const [, major, minor] = /^(\d+)\.(\d+)\.\d+$/.exec(RELEASE) ?? [];
  expect(MIN_CLIENT_RELEASE).toBe(`${major}.${Math.max(0, Number(minor) - 1)}.0`);
});
