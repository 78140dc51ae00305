/** Faults of a running handler, and faults while the agent delivers a result. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { logOf } from "../support/agent-jobs";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { writeHandlers } from "../support/own-handlers";
import { slowTest } from "../support/slow";

const TIMEOUT_S = 5;
/** How long the control plane is down: a minute in `npm run test:slow`. */
const AWAY_S = process.env.TEST_SLOW ? 60 : 2 * TIMEOUT_S;

let forge: Forge;
const gate = mkdtempSync(join(tmpdir(), "forge-gate-"));

/** Shell code that waits until the test creates the file `name`. */
const WAIT = (name: string): string => `while [ ! -e ${gate}/${name} ]; do sleep 0.05; done\n`;

const HANDLERS = {
  generate: `echo "pid $$"
[ -e ${gate}/once ] || { touch ${gate}/once; ${WAIT("never")} }
echo rows >"$FORGE_OUTPUT_DIR/raw.jsonl"`,
  audit: `echo begun\n${WAIT("go")}echo rows >"$FORGE_OUTPUT_DIR/scored.jsonl"\necho ended`,
  distill: `echo "CUDA out of memory"; exit 75`,
  train: `import subprocess, sys, time
group = [subprocess.Popen(["sleep", "613"]), subprocess.Popen(["sleep", "613"], start_new_session=True)]
print("pids", *(each.pid for each in group), flush=True)
print('::forge {"progress": 0.5, "metrics": {"gpu_hours": 1.5}}', flush=True)
time.sleep(600)`,
  evaluate: `echo "no such column" >&2; exit 3`,
  deploy: `exit 1`,
};

const BODIES: Record<string, Record<string, unknown>> = {
  generate: { task: "t", size: 1, teacher: "t" },
  audit: { dataset_uri: "forge://artifacts/samples/rows.jsonl" },
  distill: { dataset_id: "d", teacher: "t" },
  train: { dataset_id: "d", model: "m" },
  evaluate: { checkpoint_id: "c" },
};

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_HEARTBEAT_TIMEOUT_S: String(TIMEOUT_S),
      HEARTBEAT_INTERVAL: "0.5",
      FORGE_CANCEL_GRACE_S: "15",
      STOP_GRACE: "2",
    },
    { own: ["server"] },
  );
  const samples = join(forge.stack.storeDir, "artifacts", "samples");
  mkdirSync(samples, { recursive: true });
  writeFileSync(join(samples, "rows.jsonl"), '{"q": "why?"}\n');
  await startBox();
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
  rmSync(gate, { recursive: true, force: true });
});

const submit = (type: string, more = {}): Promise<Job> =>
  forge.user.submit(type, { ...BODIES[type], ...more });

async function startBox(): Promise<void> {
  const config = writeHandlers(forge, "faults", HANDLERS);
  await forge.stack.startAgent("box", { FORGE_AGENT_CONFIG: config });
}

/** Waits until the log contains a match. */
async function untilLogged(jobId: string, what: RegExp): Promise<RegExpExecArray> {
  return await waitFor(`${what} in the log`, async () => {
    return what.exec(await logOf(forge.user, jobId)) ?? undefined;
  });
}

function isRunning(pid: number): boolean {
  try {
    const state = execFileSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
    return !state.startsWith("Z");
  } catch {
    return false;
  }
}

test("a killed handler is retried on this worker, and the log says so", async () => {
  const { job_id } = await submit("generate");
  const [, pid] = await untilLogged(job_id, /pid (\d+)/);
  process.kill(Number(pid), "SIGKILL");
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  expect(await logOf(forge.user, job_id)).toMatch(
    /signal 9 \(SIGKILL\).*local retry 1 of 2\npid \d+\n/,
  );
});

test("out of memory is retried on this worker, then reported as transient: another attempt", async () => {
  const { job_id } = await submit("distill", { max_attempts: 2 });
  expect(await untilEnded(forge.user, job_id, 60_000)).toMatchObject({
    status: "failed",
    attempts: 2,
    error_code: "job_error",
    error: expect.stringMatching(/CUDA out of memory/),
  });
  const failure = "the handler ended with exit code 75: CUDA out of memory";
  expect((await logOf(forge.user, job_id)).split("\n")).toEqual([
    "CUDA out of memory",
    `[forge] failed, transient: ${failure}; local retry 1 of 2`,
    "CUDA out of memory",
    `[forge] failed, transient: ${failure}; local retry 2 of 2`,
    "CUDA out of memory",
    `[forge] failed, transient: ${failure}`,
    "",
  ]);
});

test("a fatal failure is not retried", async () => {
  const { job_id } = await submit("evaluate");
  expect(await untilEnded(forge.user, job_id)).toMatchObject({
    status: "failed",
    attempts: 1,
    error: "the handler ended with exit code 3: no such column",
  });
  expect(await logOf(forge.user, job_id)).not.toMatch(/local retry/);
});

test("a cancel ends the whole process group within the grace period; log and usage so far are kept", async () => {
  const { job_id } = await submit("train");
  const [, ...pids] = await untilLogged(job_id, /pids (\d+) (\d+)/);
  const started = performance.now();
  await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
  const job = await untilEnded(forge.user, job_id);
  // The control plane ends a cancelled job without the agent after 15 s (FORGE_CANCEL_GRACE_S). The
  // job ended earlier, so the agent ended it.
  expect(performance.now() - started).toBeLessThan(14_000);
  expect(job).toMatchObject({ status: "failed", error_code: "cancelled", attempts: 1 });
  expect(pids.map(Number).filter(isRunning)).toEqual([]);
  expect(await logOf(forge.user, job_id)).toMatch(/^pids .*\n\[forge\] stopped: cancelled\n$/);
  const [attempt] = await forge.user.attempts(job_id);
  expect(attempt?.usage).toMatchObject({ gpu_hours: 1.5 });
});

test("after its time-out the process group is ended by the control plane's command", async () => {
  const { job_id } = await submit("train", { timeout_s: 2, max_attempts: 1 });
  const [, ...pids] = await untilLogged(job_id, /pids (\d+) (\d+)/);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ error_code: "timeout" });
  await waitFor("the group to be gone", () => !pids.map(Number).some(isRunning));
});

test("a second SIGTERM aborts the job, which returns to the queue at once", async () => {
  const { job_id } = await submit("train", { max_attempts: 2 });
  const [, ...pids] = await untilLogged(job_id, /pids (\d+) (\d+)/);
  const agent = forge.stack.agents.get("box");
  agent?.signal("SIGTERM");
  await waitFor("it to drain", () =>
    /stopping after the running jobs/.test(agent?.logTail() ?? ""),
  );
  expect(agent?.alive).toBe(true);
  agent?.signal("SIGTERM");
  expect(await agent?.exited).toBe(0);
  expect(pids.map(Number).filter(isRunning)).toEqual([]);
  const attempts = await waitFor("another attempt", async () => {
    const all = await forge.user.attempts(job_id);
    return all.length > 1 && all;
  });
  expect(attempts).toMatchObject([
    { outcome: "failed", error: "the worker was stopped by a second signal" },
    {},
  ]);
  await startBox();
  await untilLogged(job_id, /pids/);
  await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
  await untilEnded(forge.user, job_id);
});

/** Starts a job whose handler waits for the file `go`. */
async function waiting(): Promise<string> {
  rmSync(join(gate, "go"), { force: true });
  const { job_id } = await submit("audit");
  await untilLogged(job_id, /begun/);
  return job_id;
}

const go = (): void => writeFileSync(join(gate, "go"), "");

test(`the control plane is killed, and down for ${AWAY_S} s around the result: no attempt is lost`, async () => {
  const jobId = await waiting();
  await forge.withoutServers(async () => {
    go();
    await sleep(AWAY_S * 1000);
  });
  expect(await untilEnded(forge.user, jobId, 60_000)).toMatchObject({
    status: "completed",
    attempts: 1,
  });
  expect(await logOf(forge.user, jobId)).toMatch(/^begun\nended\n\[forge\] uploaded 1 files/);
}, 180_000);

slowTest("an undelivered result survives a restart of its agent", async () => {
  const jobId = await waiting();
  const agent = forge.stack.agents.get("box");
  // A lock on the job's row blocks its result, and nothing else.
  const lock = await forge.ctx.pool.connect();
  try {
    await lock.query("begin");
    await lock.query("select from jobs where job_id = $1 for update", [jobId]);
    go();
    await waitFor("the result to be refused", () =>
      /result not delivered yet/.test(agent?.logTail() ?? ""),
    );
    await agent?.kill();
    await lock.query("rollback");
  } finally {
    lock.release();
  }
  await startBox();
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
});

test("the store is unavailable during the upload: the upload continues when it is back", async () => {
  const jobId = await waiting();
  const uploads = join(forge.stack.storeDir, "uploads");
  rmSync(uploads, { recursive: true, force: true });
  writeFileSync(uploads, "in the way");
  go();
  const agent = forge.stack.agents.get("box");
  await waitFor("the upload to fail", () => /HTTP 503/.test(agent?.logTail() ?? ""));
  expect(await forge.user.job(jobId)).toMatchObject({ status: "running" });
  rmSync(uploads);
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
});

slowTest(
  "a log of 100 MB is limited, and the job completes",
  async () => {
    await forge.stack.agents.get("box")?.stop();
    const program = `import os, sys
for n in range(1_000_000): sys.stdout.write(f"line {n:7d} " + "x" * 87 + "\\n")`;
    await forge.stack.startAgent("loud", {
      FORGE_AGENT_CONFIG: writeHandlers(forge, "loud", { evaluate: program }),
    });
    const { job_id } = await submit("evaluate");
    expect(await untilEnded(forge.user, job_id, 60_000)).toMatchObject({ status: "completed" });
    const log = await logOf(forge.user, job_id);
    expect(log.length).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(log.length).toBeGreaterThan(63 * 1024 * 1024);
    expect(log).toMatch(/^line {7}0 x+\n/);
    expect(log).toMatch(/\[forge\] \d+ bytes of the log are omitted here: it exceeds its limit\n/);
    expect(log).toMatch(/line {2}999999 x+\n.*uploaded 0 files, 0 bytes\n$/);
    await forge.stack.agents.get("loud")?.stop();
  },
  90_000,
);

const canMount = process.platform === "linux" && process.getuid?.() === 0;

(canMount ? describe : describe.skip)("a full work folder", () => {
  const disk = join(gate, "disk");

  beforeAll(async () => {
    await forge.stack.agents.get("box")?.stop();
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", disk]);
  });

  afterAll(() => {
    execFileSync("umount", ["--lazy", disk]);
  });

  test("fails the job as retryable, and the agent keeps running", async () => {
    const program = `head -c 16000000 /dev/zero >"$FORGE_OUTPUT_DIR/big" || exit 75`;
    const agent = await forge.stack.startAgent("small", {
      FORGE_AGENT_STATE: disk,
      MIN_FREE_DISK_GB: "0",
      LOCAL_MAX_RETRIES: "0",
      FORGE_AGENT_CONFIG: writeHandlers(forge, "full", {
        evaluate: program,
        audit: HANDLERS.audit,
      }),
    });
    const { job_id } = await submit("evaluate", { max_attempts: 2 });
    expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "failed", attempts: 2 });
    expect(await forge.user.attempts(job_id)).toMatchObject([
      { outcome: "failed" },
      { outcome: "failed" },
    ]);
    expect(await logOf(forge.user, job_id)).toMatch(/No space left on device/);
    go();
    const { job_id: next } = await submit("audit");
    expect(await untilEnded(forge.user, next)).toMatchObject({ status: "completed" });
    await agent.stop();
  });

  slowTest("keeps the worker out of service, with the reason, until there is room", async () => {
    await forge.stack.startAgent("roomless", {
      FORGE_AGENT_STATE: disk,
      MIN_FREE_DISK_GB: "0.1",
      FORGE_AGENT_CONFIG: writeHandlers(forge, "full", { evaluate: "echo fine" }),
    });
    const worker = await waitFor("error", async () => {
      const found = await forge.user
        .get<{ status: string }>("/api/workers/roomless")
        .catch(() => undefined);
      return found?.status === "error" && found;
    });
    expect(worker).toMatchObject({
      error_code: "reported",
      status_reason: expect.stringMatching(/has 0\.0 GB free, less than 0\.1/),
    });
    const { job_id } = await submit("evaluate");
    execFileSync("mount", ["-o", "remount,size=400m", disk]);
    expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed" });
    await forge.stack.agents.get("roomless")?.stop();
  });
});
