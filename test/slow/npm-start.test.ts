import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { untilEnded } from "../support/jobs";
import { NpmStart } from "../support/npm-start";

const homes: string[] = [];
const started: NpmStart[] = [];

function newHome(): string {
  const home = mkdtempSync(join(tmpdir(), "forge-test-"));
  homes.push(home);
  return home;
}

function start(home: string, env: Record<string, string> = {}): NpmStart {
  const stack = NpmStart.run(home, env);
  started.push(stack);
  return stack;
}

afterEach(async () => {
  for (const stack of started.splice(0)) await stack.stop();
  for (const home of homes.splice(0)) rmSync(home, { recursive: true, force: true });
});

async function makeDataset(home: string, rows: number): Promise<void> {
  const python = await pythonEnvironment(saySilently);
  const generator = join(checkoutRoot(), "dev", "sample-data", "generate.py");
  const out = join(home, "store", "artifacts", "rows.jsonl");
  execFileSync(python, [generator, "--rows", String(rows), "--out", out]);
}

/** Runs `npm run check-invariants` against the stack. */
function proveInvariants(home: string): string {
  const script = join(checkoutRoot(), "dist", "dev", "check-invariants.js");
  return execFileSync(process.execPath, [script], {
    encoding: "utf8",
    env: { ...process.env, FORGE_HOME: home },
  });
}

test("a job that runs when everything is killed finishes after the next start", async () => {
  const home = newHome();
  await makeDataset(home, 40_000);
  const first = start(home, { HEARTBEAT_INTERVAL: "0.5" });
  const before = await first.user();
  // Retry like a client: on a busy machine, Postgres may need longer than the request's time-out to
  // sync a commit to disk.
  const headers = { "idempotency-key": "killed" };
  const job_id = await waitFor("the submission to be taken", async () => {
    const body = { dataset_uri: "forge://artifacts/rows.jsonl" };
    const answer = await before.call<{ job_id: string }>("POST", "/api/jobs/audit", body, headers);
    return answer.status === 201 && answer.body.job_id;
  });
  await waitFor("the audit to be under way", async () => {
    return ((await before.job(job_id)).progress ?? 0) > 0;
  });
  await first.killAll();

  const second = start(home, { HEARTBEAT_INTERVAL: "0.5" });
  const job = await untilEnded(await second.user(), job_id, 60_000);
  expect(job).toMatchObject({ status: "completed", attempts: 2, result: { num_rows: 40_000 } });
  expect(proveInvariants(home)).toContain("I1-I7 hold");
}, 120_000);

test("two stacks run side by side, a third one with the home of one of them is refused", async () => {
  const [homeA, homeB] = [newHome(), newHome()];
  const [a, b] = [start(homeA), start(homeB, { FORGE_AGENTS: "0" })];
  const [fileA, fileB] = [await a.ready(), await b.ready()];
  expect(a.stackFileMode).toBe(0o600);
  expect(fileA.pids.agents).toHaveLength(1);
  expect(fileB.pids.agents).toHaveLength(0);
  expect(fileA.api_url).not.toBe(fileB.api_url);
  const ping = (url: string, key: string): Promise<Response> =>
    fetch(`${url}/api/auth/ping`, { headers: { "x-service-api-key": key } });
  expect((await ping(fileA.api_url, fileA.user_api_key)).status).toBe(200);
  expect((await ping(fileB.api_url, fileA.user_api_key)).status).toBe(403);

  const third = start(homeA);
  expect(await third.exited).toBe(1);
  expect(third.output).toContain("a stack is already running in");
  expect((await ping(fileA.api_url, fileA.user_api_key)).status).toBe(200);

  expect(await a.stop()).toBe(0);
  expect(existsSync(a.stackFile)).toBe(false);
}, 120_000);

test("SIGTERM to the server answers waiting polls, and the server is restarted", async () => {
  const stack = start(newHome(), { FORGE_AGENTS: "0" });
  const { api_url, worker_api_key, pids } = await stack.ready();
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${api_url}${path}`, {
      method: "POST",
      headers: { "x-service-api-key": worker_api_key, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  await post("/worker/register", { worker_id: "w", gpu: { name: "cpu", memory_gb: 0 } });
  // A worker can have only one waiting poll: a new poll ends the older one with an empty response.
  // So after the race below, one poll has been answered and the other one is waiting.
  const polls = [1, 2].map(async () => {
    const answer = await post("/worker/next_job", { worker_id: "w", wait_seconds: 50 });
    return await answer.json();
  });
  await Promise.race(polls);
  const signalled = performance.now();
  process.kill(pids.server, "SIGTERM");
  expect(await Promise.all(polls)).toEqual([{ job_id: null }, { job_id: null }]);
  expect(performance.now() - signalled).toBeLessThan(5_000);
  await waitFor("the server to be back", async () => (await fetch(`${api_url}/readyz`)).ok, {
    timeoutMs: 30_000,
  });
}, 120_000);
