/**
 * The TypeScript SDK, packed and installed, against a real stack whose workers complete every job.
 */

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { usualWork, WorkerPool } from "../support/pipelines";
import { slowTest } from "../support/slow";
import { TestWorker } from "../support/test-worker";

let forge: Forge;
let crew: WorkerPool;
const folder = mkdtempSync(join(tmpdir(), "forge-sdk-"));
const sdk = join(checkoutRoot(), "sdk", "typescript");
const execute = promisify(execFile);

beforeAll(async () => {
  // `split` runs the workflows in their own process, because a test kills the server. Temporal
  // would notice a killed workflow worker only after ten seconds.
  forge = await startForge({}, { split: true });
  crew = await new WorkerPool(forge, (job) =>
    String(job.payload.dataset_uri).endsWith("fail") ? { error: "asked to fail" } : usualWork(job),
  ).start(3);
  await installPackage();
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

/** Installs the archive that would be published, as a user would. */
async function installPackage(): Promise<void> {
  await execute("npm", ["pack", "--pack-destination", folder], { cwd: sdk });
  const [archive = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
  writeFileSync(join(folder, "package.json"), '{"private": true, "type": "module"}');
  // Offline, because the package has no dependencies.
  const flags = ["--offline", "--no-audit", "--no-fund"];
  await execute("npm", ["install", ...flags, `./${archive}`], { cwd: folder });
}

/** Runs a script to its end. @returns its output. */
async function run(script: string, flags: string[] = []): Promise<string> {
  const env = {
    ...process.env,
    SERVICE_BASE_URL: forge.stack.apiUrl,
    SERVICE_API_KEY: forge.stack.keys.userKey,
  };
  const options = { cwd: folder, env, timeout: 100_000 };
  const { stdout, stderr } = await execute(process.execPath, [...flags, script], options);
  expect(stderr).toBe("");
  return stdout;
}

/**
 * Runs one evaluation job as a worker with this tag, and writes the job's log in two pieces. Calls
 * `between` after the first piece.
 */
async function writeLog(tag: string, between = async (): Promise<void> => {}): Promise<void> {
  const { apiUrl, keys } = forge.stack;
  const worker = new TestWorker(forge.user, `worker-${tag}`);
  // Limit job_types, because a worker with a tag also gets jobs without the tag.
  await worker.register(undefined, { tags: [tag], job_types: ["evaluate"] });
  const job = await worker.take(30);
  const log = Buffer.from("first\nsecönd\nlast, without an end");
  const append = async (start: number, end: number): Promise<void> => {
    const query = `worker_id=${worker.id}&attempt=${job.attempt}`;
    const { status } = await fetch(`${apiUrl}/worker/jobs/${job.job_id}/log?${query}`, {
      method: "PATCH",
      headers: {
        "x-service-api-key": keys.userKey,
        "content-type": "text/plain",
        "content-range": `bytes ${start}-${end - 1}/*`,
      },
      body: log.subarray(start, end),
    });
    expect(status).toBe(202);
  };
  await append(0, 9);
  await worker.heartbeat({ status: "busy", progress: 0.5, job_id: job.job_id, attempt: 1 });
  await between();
  await append(9, log.length);
  await worker.complete(job, { metrics: { samples_evaluated: 100 } });
}

/**
 * Copies a script of the SDK's tests to the folder in which the package is installed. @returns the
 * script's name.
 */
function place(name: string): string {
  writeFileSync(join(folder, name), readFileSync(join(sdk, "test", name)));
  return name;
}

test("in Node: jobs, events, logs, files, pipelines, bills", async () => {
  const [printed] = await Promise.all([run(place("stack-node.mjs")), writeLog("writes-log")]);
  expect(printed).toBe("all right\n");
}, 120_000);

slowTest(
  "waiting and reading a log continue after the server was killed and restarted",
  async () => {
    const restart = async (): Promise<void> => {
      await waitFor("a line to be read", () => existsSync(join(folder, "has-read")));
      await forge.stack.server?.kill();
      await forge.stack.startServer();
    };
    const [printed] = await Promise.all([
      run(place("stack-restart.mjs")),
      writeLog("sees-restart", restart),
    ]);
    expect(printed).toBe("all right\n");
  },
  120_000,
);

test("as in a browser: the package under the browser condition", async () => {
  const script = place("stack-browser.mjs");
  expect(await run(script, ["--conditions=browser"])).toBe("all right\n");
}, 60_000);

const snippetsOf = (page: string): string[] =>
  [...readFileSync(join(checkoutRoot(), page), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map(
    ([, code = ""]) => code,
  );

test.each(["README.md", "docs/sdk-typescript.md"])(
  "the snippets of %s run unchanged",
  async (page) => {
    const snippets = snippetsOf(page);
    expect(snippets.length).toBeGreaterThan(page === "README.md" ? 0 : 8);
    expect(snippets[0]?.trim().split("\n").filter(Boolean).length).toBeLessThanOrEqual(5);
    for (const file of ["questions.jsonl", "tasks.jsonl"]) {
      writeFileSync(join(folder, file), '{"question": "1 + 1?", "answer": "2"}\n'.repeat(9));
    }
    writeFileSync(join(folder, "page.mjs"), `${snippets.join("\n")}\nconsole.log("all right");\n`);
    expect(await run("page.mjs")).toMatch(/all right\n$/);
  },
  120_000,
);

test("the types of the package match the documentation", async () => {
  writeFileSync(join(folder, "page.ts"), snippetsOf("docs/sdk-typescript.md").join("\n"));
  const typescript = join(checkoutRoot(), "node_modules/typescript/bin/tsc");
  const types = join(checkoutRoot(), "node_modules/@types");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
  const surroundings = ["--lib", "es2023,dom", "--typeRoots", types, "--types", "node"];
  await execute(process.execPath, [typescript, ...flags, ...surroundings, "page.ts"], {
    cwd: folder,
  });
}, 60_000);
