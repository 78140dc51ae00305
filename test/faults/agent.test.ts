/** Faults of the real agent and its job. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { isOffered, untilEnded } from "../support/jobs";
import { writeHandlers } from "../support/own-handlers";

/**
 * The heartbeat time-out. A test freezes the agent for BLIP_S. The time-out is much longer than
 * that, because a slow machine also delays heartbeats.
 */
const TIMEOUT_S = 20;
const BLIP_S = 4;
const gate = mkdtempSync(join(tmpdir(), "forge-gate-"));

/** A handler that waits until the test creates the file `go`. */
const WAITING_AUDIT = `echo '::forge {"progress": 0.1}'
while [ ! -e ${gate}/go ]; do sleep 0.05; done
cp "$FORGE_INPUT_DATASET_URI" "$FORGE_OUTPUT_DIR/scored.jsonl"`;

let forge: Forge;
let config: string;

const startAgent = (): Promise<unknown> =>
  forge.stack.startAgent("agent", { FORGE_AGENT_CONFIG: config });

beforeAll(async () => {
  forge = await startForge({
    FORGE_HEARTBEAT_TIMEOUT_S: String(TIMEOUT_S),
    HEARTBEAT_INTERVAL: "0.5",
  });
  const samples = join(forge.stack.storeDir, "artifacts", "samples");
  mkdirSync(samples, { recursive: true });
  writeFileSync(join(samples, "rows.jsonl"), '{"q": "why?"}\n');
  config = writeHandlers(forge, "slow", { audit: WAITING_AUDIT });
  await startAgent();
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
  rmSync(gate, { recursive: true, force: true });
});

/** Starts a job on the agent. The job runs until the test calls `go`. */
async function underWay(): Promise<string> {
  rmSync(join(gate, "go"), { force: true });
  const { job_id } = await forge.user.submit("audit", {
    dataset_uri: "forge://artifacts/samples/rows.jsonl",
  });
  await waitFor("progress", async () => ((await forge.user.job(job_id)).progress ?? 0) > 0);
  return job_id;
}

const go = (): void => writeFileSync(join(gate, "go"), "");

test(`frozen for ${BLIP_S} s continues its attempt`, async () => {
  const jobId = await underWay();
  forge.stack.agents.get("agent")?.signal("SIGSTOP");
  await sleep(BLIP_S * 1000);
  forge.stack.agents.get("agent")?.signal("SIGCONT");
  go();
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
});

test("stops the cancelled job, and takes the next one", async () => {
  const jobId = await underWay();
  await forge.user.post(`/api/jobs/${jobId}/cancel`, {});
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ error_code: "cancelled" });
  expect((await forge.user.get<{ status: string }>("/api/workers/agent")).status).toBe("idle");
  const next = await underWay();
  go();
  expect(await untilEnded(forge.user, next)).toMatchObject({ status: "completed" });
});

test("killed and restarted without its job returns it to the queue at once", async () => {
  const jobId = await underWay();
  await forge.stack.agents.get("agent")?.kill();
  await startAgent();
  go();
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 2 });
  expect(await forge.user.attempts(jobId)).toMatchObject([
    { outcome: "worker_lost", error: expect.stringMatching(/its worker started again/) },
    { outcome: "completed" },
  ]);
});

test("drained finishes its job and leaves", async () => {
  const jobId = await underWay();
  await forge.user.post("/api/workers/agent/drain", {});
  go();
  expect(await forge.stack.agents.get("agent")?.exited).toBe(0);
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
});

test("exits when its key is revoked, and logs the reason", async () => {
  const { key, key_id } = await forge.user.post<{ key: string; key_id: string }>(
    "/api/auth/api-keys",
    { scope: "worker" },
  );
  const agent = await forge.stack.startAgent("keyless", { SERVICE_API_KEY: key });
  await waitFor("it to wait", () => isOffered(forge.ctx.pool, "keyless"));
  await forge.user.call("DELETE", `/api/auth/api-keys/${key_id}`);
  expect(await agent.exited).toBe(77);
  expect(agent.logTail()).toMatch(/the API key is refused/);
});
