import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/** A project with a single file, for the rules of .dependency-cruiser.cjs. */
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
  // Not symbolic links to the checkout: the rules see a package at its real path.
  for (const name of PACKAGES) {
    const folder = join(project, "node_modules", name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0" }));
    writeFileSync(join(folder, "index.js"), "");
  }
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

/** The names of the rules that a file with this code breaks. */
function broken(path: string, code: string): string[] {
  const file = join(project, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, code);
  const program = inCheckout("node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
  const args = [program, "--config", CONFIG, "--output-type", "json", path];
  const { stdout } = spawnSync(process.execPath, args, { cwd: project, encoding: "utf8" });
  const { summary } = JSON.parse(stdout) as {
    summary: { violations: { rule: { name: string } }[] };
  };
  return summary.violations.map(({ rule }) => rule.name);
}

test.each([
  ["core/planted.ts", "fastify", ["core-is-pure"]],
  ["core/planted.ts", "node:fs", ["core-is-pure"]],
  ["core/planted.ts", "zod", []],
  ["workflows/planted.ts", "pg", ["workflows-are-deterministic"]],
  ["workflows/planted.ts", "@temporalio/workflow", []],
  ["sdk/typescript/src/planted.ts", "undici", ["sdk-stands-alone"]],
  ["platform/planted.ts", "../services/some", ["platform-imports"]],
  ["services/planted.ts", "../api/some", ["services-imports"]],
  ["api/planted.ts", "../services/some", []],
])("%s that imports %s breaks %j", (path, imported, rules) => {
  const code = `import * as planted from "${imported}";\nexport const found = planted;\n`;
  expect(broken(path, code)).toEqual(rules);
});
