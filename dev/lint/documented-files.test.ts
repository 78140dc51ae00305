import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/** Files of the example in docs/extending.md, which the reader adds. */
const ADDED_BY_READER = [
  "core/jobs/types/quantize.ts",
  "compute/src/forge_compute/quantize.py",
  "quantize.ts",
  "quantize.py",
];

const root = checkoutRoot();
const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => file !== "");

const folders = new Set<string>();
for (const file of files) {
  for (let folder = dirname(file); folder !== "."; folder = dirname(folder)) folders.add(folder);
}
const paths = new Set([...files, ...folders]);
const names = new Set(files.map((file) => basename(file)));

/** Whether the text names a file or folder that exists. Paths of tests may lack their suffix. */
function exists(text: string): boolean {
  if (!text.includes("/")) return names.has(text);
  return ["", ".ts", ".test.ts"].some((suffix) => paths.has(`${text}${suffix}`));
}

/** Whether the text looks like a path in the checkout, or like the name of a source file. */
function isPath(text: string): boolean {
  if (text.includes("/")) return folders.has(text.split("/", 1)[0] ?? "");
  return /\.(ts|tsx|py|sh|mjs|cjs)$/.test(text);
}

test.each(files.filter((file) => file.endsWith(".md")))("the files that %s names exist", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  const named = [...text.matchAll(/`([\w./-]+)`/g)].map(([, path = ""]) => path.replace(/\/$/, ""));
  const missing = named.filter((path) => isPath(path) && !exists(path));
  expect(missing.filter((path) => !ADDED_BY_READER.includes(path))).toEqual([]);
});
