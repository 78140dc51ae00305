import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkoutRoot } from "../stack/paths";

/** The rules of .dependency-cruiser.cjs, in a house of one file. */
const house = mkdtempSync(join(tmpdir(), "forge-house-"));
const PACKAGES = ["fastify", "zod", "pg", "@temporalio/workflow", "undici"];
const CONFIG = ".dependency-cruiser.cjs";

const inCheckout = (path: string): string => join(checkoutRoot(), path);

beforeAll(() => {
  mkdirSync(join(house, "dev"));
  for (const path of [CONFIG, "dev/rooms.json", "package.json"]) {
    copyFileSync(inCheckout(path), join(house, path));
  }
  // Not linked to the checkout's: rules see a package where it really lies.
  for (const name of PACKAGES) {
    const folder = join(house, "node_modules", name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0" }));
    writeFileSync(join(folder, "index.js"), "");
  }
});

afterAll(() => rmSync(house, { recursive: true, force: true }));

/** The names of the rules that this file breaks. */
function broken(path: string, code: string): string[] {
  const file = join(house, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, code);
  const program = inCheckout("node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
  const args = [program, "--config", CONFIG, "--output-type", "json", path];
  const { stdout } = spawnSync(process.execPath, args, { cwd: house, encoding: "utf8" });
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
])("%s that imports %s breaks %j", (path, imported, rules) => {
  const code = `import * as planted from "${imported}";\nexport const found = planted;\n`;
  expect(broken(path, code)).toEqual(rules);
});
