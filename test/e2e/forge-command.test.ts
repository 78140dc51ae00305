/** The `forge` command against a real stack: in a terminal, and as in its documentation. */

import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { type Forge, startForge } from "../support/forge";
import { WorkerPool } from "../support/pipelines";
import { slowTest } from "../support/slow";

let forge: Forge;
let python: string;
let crew: WorkerPool | undefined;
const folder = mkdtempSync(join(tmpdir(), "forge-command-"));
const tests = join(checkoutRoot(), "sdk", "python", "tests");
/** A copy of the SDK's sources. Python stores compiled files next to the sources that it runs. */
const sources = join(folder, "src");

beforeAll(async () => {
  python = await pythonEnvironment(saySilently, ["sdk", "terminal"]);
  forge = await startForge();
  cpSync(join(checkoutRoot(), "sdk", "python", "src"), sources, { recursive: true });
  mkdirSync(join(folder, "bin"));
  const command = join(folder, "bin", "forge");
  writeFileSync(command, `#!/bin/sh\nexec "${python}" -m forge "$@"\n`);
  chmodSync(command, 0o755);
  writeFileSync(join(folder, "tasks.jsonl"), '{"question": "1 + 1?", "answer": "2"}\n'.repeat(9));
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

/** Runs a program to its end. @returns its output. Throws with its output if it failed. */
async function run(
  program: string,
  args: string[],
  more: Record<string, string> = {},
): Promise<string> {
  const env = {
    ...process.env,
    SERVICE_BASE_URL: forge.stack.apiUrl,
    SERVICE_API_KEY: forge.stack.keys.userKey,
    XDG_CONFIG_HOME: join(folder, "config"),
    ...more,
  };
  return await new Promise((resolve, reject) => {
    const options = { cwd: folder, env, timeout: 280_000 };
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

const shellBlocks = (page: string): string[] =>
  [...readFileSync(join(checkoutRoot(), page), "utf8").matchAll(/^```sh\n(.*?)^```$/gms)].map(
    ([, code = ""]) => code,
  );

test("in a terminal: progress, Ctrl-C, resuming, narrow, without colours", async () => {
  // RECORD_SCREENS=1 writes the screens to docs/images.
  const pictures = process.env.RECORD_SCREENS ? [join(checkoutRoot(), "docs", "images")] : [];
  const printed = await run(python, [join(tests, "stack_terminal.py"), ...pictures], {
    PYTHONPATH: sources,
    WORKER_KEY: forge.stack.keys.workerKey,
  });
  expect(printed).toBe("all right\n");
}, 300_000);

describe("with workers that complete every job", () => {
  beforeAll(async () => {
    crew = await new WorkerPool(forge).start(2);
  });

  slowTest(
    "the commands of docs/cli.md run unchanged",
    async () => {
      const blocks = shellBlocks("docs/cli.md");
      expect(blocks.length).toBeGreaterThan(6);
      writeFileSync(join(folder, "page.sh"), blocks.join("\n"));
      const printed = await run("bash", ["-euo", "pipefail", "page.sh"], {
        PATH: `${join(folder, "bin")}:${process.env.PATH}`,
        PYTHONPATH: sources,
      });
      expect(printed).toContain("ok       key: of ");
      expect(JSON.parse(readFileSync(join(folder, "job.json"), "utf8"))).toMatchObject({
        job_type: "audit",
        status: "completed",
      });
    },
    300_000,
  );
});
