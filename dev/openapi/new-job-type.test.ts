import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../stack/paths";
import { filesOfJobTypes } from "./job-types/files";

/** Files that the generators read or write, and the clients whose types are checked. */
const SOURCES = [
  ...["core", "platform", "services", "activities", "api", "agent-bridge", "bin", "dev"],
  ...["sdk", "dashboard", "agent/src", "compute/src", "docs/openapi.json", "docs/schemas"],
  ...["tsconfig.json", "package.json"],
];

const root = checkoutRoot();
const guide = readFileSync(join(root, "docs/extending.md"), "utf8");
/**
 * The two code blocks of the guide: the declaration of the type, and its entry in the list of
 * types.
 */
const [declaration = "", listing = ""] = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)].map(
  ([, code]) => code ?? "",
);

let copy: string;

const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { cwd: copy, encoding: "utf8", stdio: "pipe" });
const compile = (...args: string[]): string =>
  run(process.execPath, "node_modules/typescript/bin/tsc", ...args);
const git = (...args: string[]): string =>
  run("git", "-c", "user.name=test", "-c", "user.email=test@example.com", ...args);
const read = (path: string): string => readFileSync(join(copy, path), "utf8");

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), "forge-job-type-"));
  const isSource = (path: string): boolean => !/\/(dist|node_modules|__pycache__)(\/|$)/.test(path);
  for (const path of SOURCES) {
    cpSync(join(root, path), join(copy, path), {
      recursive: true,
      filter: (from) => isSource(from.slice(root.length)),
    });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  writeFileSync(join(copy, ".gitignore"), "node_modules\ndist\ntsconfig.generators.json\n");
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message=before");
  addType();
  generate();
}, 120_000);

afterAll(() => {
  if (copy) rmSync(copy, { recursive: true, force: true });
});

function addType(): void {
  writeFileSync(join(copy, "core/jobs/types/quantize.ts"), declaration);
  const [imported = "", , list = ""] = listing.split("\n");
  const index = read("core/jobs/types/index.ts");
  const changed = index.replace(/^export const DECLARATIONS = .*$/m, list);
  writeFileSync(join(copy, "core/jobs/types/index.ts"), `${imported}\n${changed}`);
}

/** Runs the generators on the copy. Their compilation also checks the types of all server code. */
function generate(): void {
  const project = {
    extends: "./tsconfig.json",
    compilerOptions: { incremental: false, tsBuildInfoFile: null, sourceMap: false },
    include: ["core", "platform", "services", "activities", "api", "bin", "dev/openapi"],
    exclude: ["**/*.test.ts"],
  };
  writeFileSync(join(copy, "tsconfig.generators.json"), JSON.stringify(project));
  compile("-p", "tsconfig.generators.json");
  for (const path of ["services/fleet/bootstrap/bootstrap.sh", "bin/api-reference"]) {
    cpSync(join(copy, path), join(copy, "dist", path), { recursive: true });
  }
  run(process.execPath, "dist/dev/openapi/openapi.js", "--write");
}

test("adding a job type changes two files by hand; the rest is generated", () => {
  const changed = git("status", "--porcelain", "--untracked-files=all")
    .split("\n")
    .map((line) => line.slice(3))
    .filter(Boolean);
  expect(changed.sort()).toEqual(
    [
      "core/jobs/types/index.ts",
      "core/jobs/types/quantize.ts",
      "docs/openapi.json",
      "sdk/typescript/src/schema.ts",
      ...Object.keys(filesOfJobTypes()),
    ].sort(),
  );
});

test("clients include the new type, and compile", () => {
  compile("-p", "sdk/typescript", "--noEmit");
  compile("-p", "dashboard");
  expect(read("sdk/python/src/forge/cli/job_type_commands.py")).toContain("def quantize(");
  expect(read("sdk/python/src/forge/resources/job_type_methods.py")).toContain(
    "        checkpoint_id: str,\n        bits: int = 4,\n",
  );
  expect(read("agent/src/forge_agent/declared_types.py")).toContain('"quantize"');
});

test("the server validates, prices and registers jobs of the new type, and knows their requirements", () => {
  const script = `
    const { parseSubmission } = require("./dist/core/jobs/payloads");
    const { priceJob } = require("./dist/core/billing/price-job");
    const { DEFAULT_RATE_CARD } = require("./dist/core/billing/rate-card");
    const { NO_USAGE } = require("./dist/core/billing/usage");
    const { ARTIFACT_FORMS } = require("./dist/core/artifacts/artifacts");
    const { DEFAULT_JOB_POLICY } = require("./dist/core/jobs/type-policy");
    const portion = { usage: { ...NO_USAGE, gpu_hours: 2 }, gpu_tokens: ["a100"] };
    console.log(JSON.stringify({
      payload: parseSubmission("quantize", { checkpoint_id: "c" }, { teacher: "t" }).payload,
      usd: priceJob("quantize", [portion], DEFAULT_RATE_CARD).totalCostUsd,
      kind: ARTIFACT_FORMS.quantize.kind,
      needs: DEFAULT_JOB_POLICY.quantize,
    }));`;
  expect(JSON.parse(run(process.execPath, "-e", script))).toEqual({
    payload: { checkpoint_id: "c", bits: 4 },
    usd: "2.5",
    kind: "quantized_checkpoint",
    needs: { gpu: 1 },
  });
  expect(JSON.parse(read("docs/openapi.json")).paths).toHaveProperty("/api/jobs/quantize");
});
