/** The Python SDK against a real stack whose workers complete every job. */

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { type Forge, startForge } from "../support/forge";
import { usualWork, WorkerPool } from "../support/pipelines";

let forge: Forge;
let crew: WorkerPool;
let python: string;
const folder = mkdtempSync(join(tmpdir(), "forge-sdk-"));
const sdk = join(checkoutRoot(), "sdk", "python");

beforeAll(async () => {
  python = await pythonEnvironment(saySilently, ["sdk"]);
  forge = await startForge();
  crew = await new WorkerPool(forge, (job) =>
    String(job.payload.dataset_uri).endsWith("fail") ? { error: "asked to fail" } : usualWork(job),
  ).start(3);
}, 300_000);

afterAll(async () => {
  try {
    await crew?.stop();
    await forge?.proveInvariants();
  } finally {
    await forge?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Runs a script to its end. @returns its output. Throws with its output if it failed. */
async function run(script: string): Promise<string> {
  const env = {
    ...process.env,
    PYTHONPATH: [join(sdk, "src"), join(sdk, "tests")].join(":"),
    SERVICE_BASE_URL: forge.stack.apiUrl,
    SERVICE_API_KEY: forge.stack.keys.userKey,
    WORKER_KEY: forge.stack.keys.workerKey,
  };
  return await new Promise((resolve, reject) => {
    const options = { cwd: folder, env, timeout: 100_000 };
    execFile(python, ["-X", "dev", "-W", "error", script], options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

test.each(["stack_sync.py", "stack_async.py"])(
  "%s: jobs, files, pipelines, bills",
  async (script) => {
    expect(await run(join(sdk, "tests", script))).toBe("all right\n");
  },
  120_000,
);

test.each(["README.md", "docs/sdk-python.md"])(
  "the snippets of %s run unchanged",
  async (name) => {
    const page = readFileSync(join(checkoutRoot(), name), "utf8");
    const snippets = [...page.matchAll(/^```python\n(.*?)^```$/gms)].map(([, code = ""]) => code);
    expect(snippets.length).toBeGreaterThan(name === "README.md" ? 0 : 6);
    expect(snippets[0]?.trim().split("\n").filter(Boolean).length).toBeLessThanOrEqual(5);
    for (const file of ["questions.jsonl", "tasks.jsonl"]) {
      writeFileSync(join(folder, file), '{"question": "1 + 1?", "answer": "2"}\n'.repeat(9));
    }
    writeFileSync(
      join(folder, "page.py"),
      `${snippets.join("\n")}\nclient.close()\nprint("all right")\n`,
    );
    expect(await run(join(folder, "page.py"))).toMatch(/all right\n$/);
  },
  120_000,
);
