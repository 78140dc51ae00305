import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/** A temporary project of generated files, to test the rules of .dependency-cruiser.cjs. */
const project = mkdtempSync(join(tmpdir(), "forge-project-"));
const PACKAGES = ["fastify", "zod", "pg", "@temporalio/workflow", "undici"];
const CONFIG = ".dependency-cruiser.cjs";

const inCheckout = (path: string): string => join(checkoutRoot(), path);

beforeAll(() => {
  mkdirSync(join(project, "dev"));
  for (const path of [CONFIG, "dev/source-folders.json", "package.json"]) {
    copyFileSync(inCheckout(path), join(project, path));
  }
  for (const room of ["services", "api"]) {
    mkdirSync(join(project, room));
    writeFileSync(join(project, room, "some.ts"), "export const some = 1;\n");
  }
  // Create the packages instead of linking to those of the checkout: the rules would see a linked
  // package at its real path, outside of the project.
  for (const name of PACKAGES) {
    const folder = join(project, "node_modules", name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0" }));
    writeFileSync(join(folder, "index.js"), "");
  }
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

/** The folder of a file, the module that the file imports, and the rules that the import breaks. */
const CASES: [folder: string, imported: string, rules: string[]][] = [
  ["core", "fastify", ["core-is-pure"]],
  ["core", "node:fs", ["core-is-pure"]],
  ["core", "zod", []],
  ["workflows", "pg", ["workflows-are-deterministic"]],
  ["workflows", "@temporalio/workflow", []],
  ["sdk/typescript/src", "undici", ["sdk-stands-alone"]],
  ["platform", "../services/some", ["platform-imports"]],
  ["services", "../api/some", ["services-imports"]],
  ["api", "../services/some", []],
];

const nameOf = (index: number): string => `${CASES[index]?.[0]}/planted-${index}.ts`;

let broken: { from: string; rule: { name: string } }[];

beforeAll(() => {
  CASES.forEach(([, imported], index) => {
    const file = join(project, nameOf(index));
    mkdirSync(dirname(file), { recursive: true });
    const code = `import * as planted from "${imported}";\nexport const found = planted;\n`;
    writeFileSync(file, code);
  });
  const program = inCheckout("node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
  const options = ["--config", CONFIG, "--output-type", "json"];
  const args = [program, ...options, ...CASES.map((_, index) => nameOf(index))];
  const { stdout } = spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
  broken = (JSON.parse(stdout) as { summary: { violations: typeof broken } }).summary.violations;
});

test.each(CASES.map((each, index) => [...each, nameOf(index)] as const))(
  "%s that imports %s breaks %j",
  (_folder, _imported, rules, file) => {
    const found = broken.filter(({ from }) => from === file).map(({ rule }) => rule.name);
    expect(found).toEqual(rules);
  },
);
