import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { isOffered, untilEnded } from "../support/jobs";
import { writeHandlers } from "../support/own-handlers";

/** What happens to the real agent and its job. */
const TIMEOUT_S = 6;
const BLIP_S = 4;

/** Long enough for something to happen to it, and no load on the machine. */
const SLOW_AUDIT = `echo '::forge {"progress": 0.1}'
sleep 3
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
  config = writeHandlers(forge, "slow", { audit: SLOW_AUDIT });
  await startAgent();
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

/** A job that the agent works on, some seconds long. */
async function underWay(): Promise<string> {
  const { job_id } = await forge.user.submit("audit", {
    dataset_uri: "forge://artifacts/samples/rows.jsonl",
  });
  await waitFor("progress", async () => ((await forge.user.job(job_id)).progress ?? 0) > 0);
  return job_id;
}

test(`frozen for ${BLIP_S} s goes on with its attempt`, async () => {
  const jobId = await underWay();
  forge.stack.agents.get("agent")?.signal("SIGSTOP");
  await sleep(BLIP_S * 1000);
  forge.stack.agents.get("agent")?.signal("SIGCONT");
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
});

test("stops the job that is cancelled, and takes the next", async () => {
  const jobId = await underWay();
  await forge.user.post(`/api/jobs/${jobId}/cancel`, {});
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ error_code: "cancelled" });
  expect((await forge.user.get<{ status: string }>("/api/workers/agent")).status).toBe("idle");
  expect(await untilEnded(forge.user, await underWay())).toMatchObject({ status: "completed" });
});

test("killed and started again without its job loses it to the queue, at once", async () => {
  const jobId = await underWay();
  await forge.stack.agents.get("agent")?.kill();
  await startAgent();
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 2 });
  expect(await forge.user.attempts(jobId)).toMatchObject([
    { outcome: "worker_lost", error: expect.stringMatching(/its worker started again/) },
    { outcome: "completed" },
  ]);
});

test("drained finishes its job and leaves", async () => {
  const jobId = await underWay();
  await forge.user.post("/api/workers/agent/drain", {});
  expect(await forge.stack.agents.get("agent")?.exited).toBe(0);
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
});

test("whose key is revoked leaves too, and says why", async () => {
  const { key, key_id } = await forge.user.post<{ key: string; key_id: string }>(
    "/api/auth/api-keys",
    { scope: "worker" },
  );
  const agent = await forge.stack.startAgent("keyless", { SERVICE_API_KEY: key });
  await waitFor("it to be parked", () => isOffered(forge.ctx.pool, "keyless"));
  await forge.user.call("DELETE", `/api/auth/api-keys/${key_id}`);
  expect(await agent.exited).toBe(77);
  expect(agent.lastWords()).toMatch(/the key is refused/);
});
