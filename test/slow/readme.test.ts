import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkoutRoot } from "../../dev/stack/paths";
import { type Forge, startForge } from "../support/forge";
import { WorkerPool } from "../support/pipelines";

let forge: Forge;
let crew: WorkerPool | undefined;
const folder = mkdtempSync(join(tmpdir(), "forge-readme-"));

beforeAll(async () => {
  forge = await startForge();
  crew = await new WorkerPool(forge).start(2);
});

afterAll(async () => {
  try {
    await crew?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

/**
 * Runs these lines in a new folder that contains only `sdk`, like a checkout without installed
 * packages.
 */
test("five lines of README.md get from a checkout to a job", async () => {
  const page = readFileSync(join(checkoutRoot(), "README.md"), "utf8");
  const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  const lines = blocks.find((block) => block.includes("-m venv"));
  expect(lines?.trim().split("\n").length).toBeLessThanOrEqual(5);
  symlinkSync(join(checkoutRoot(), "sdk"), join(folder, "sdk"));
  writeFileSync(join(folder, "first.sh"), lines ?? "");
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "first.sh"], {
    cwd: folder,
    env: {
      ...process.env,
      SERVICE_BASE_URL: forge.stack.apiUrl,
      SERVICE_API_KEY: forge.stack.keys.userKey,
      XDG_CONFIG_HOME: join(folder, "config"),
    },
  });
  expect(stdout).toMatch(/^job_\w+ completed/m);
}, 120_000);
