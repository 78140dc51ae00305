import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pythonEnvironment } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { logOf, runJob } from "../support/agent-jobs";
import { type Forge, startForge } from "../support/forge";
import { untilEnded, untilStatus } from "../support/jobs";

/** The reference handlers of all six types, one after the other, on a CPU, through the control plane. */
let forge: Forge;

const TEACHER = "builtin:sums";
const ROWS = 4_000;
const EPOCHS = 15;
/** What the trained model must be better by, in exact answers to questions that it never saw. */
const MARGIN = 0.5;
const MAX_TRAINING_S = 90;

beforeAll(async () => {
  await pythonEnvironment(saySilently, ["runtime", "train"]);
  forge = await startForge({ FORGE_HEARTBEAT_TIMEOUT_S: "4", HEARTBEAT_INTERVAL: "0.5" });
  await forge.stack.startAgent("box");
}, 300_000);

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

/** What each job leaves for the next ones. */
const made: Record<string, string> = {};

interface Evaluation {
  scores: { overall: number };
}

interface Chat {
  choices: { message: { content: string } }[];
}

async function ask(url: string, question: string): Promise<string> {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: question }], temperature: 0 }),
  });
  const { choices } = (await response.json()) as Chat;
  return choices[0]?.message.content ?? "";
}

test("generate, audit and distill: a dataset from a teacher", async () => {
  const raw = await runJob(forge.user, "generate", {
    task: "add",
    size: ROWS,
    teacher: TEACHER,
    params: { seed: 1 },
  });
  expect(raw.result).toMatchObject({ num_rows: ROWS });
  const scored = await runJob(forge.user, "audit", { dataset_uri: raw.result.dataset_uri });
  expect(scored.result).toMatchObject({ quality: { correctness_mean: 1 } });
  const sft = await runJob(forge.user, "distill", {
    dataset_id: scored.result.dataset_id,
    teacher: TEACHER,
    params: { min_score: 0.5 },
  });
  made.sft = String(sft.result.distilled_dataset_id);
  const bill = await forge.user.get<{ metrics: Record<string, number> }>(
    `/api/billing/records/${raw.job_id}`,
  );
  expect(bill.metrics.tokens_generated).toBeGreaterThanOrEqual(ROWS);
});

test("train: the lost attempt's steps are not done again by the next worker", async () => {
  const { job_id } = await forge.user.submit("train", {
    dataset_id: made.sft,
    model: "builtin:tiny",
    epochs: EPOCHS,
    params: { checkpoint_every_s: 1 },
  });
  const kept = await waitFor(
    "a checkpoint that is kept",
    async () => {
      const agentLog = readFileSync(forge.stack.logFile("agent-box"), "utf8");
      const isKept = /checkpoint \S+ is kept/.test(agentLog);
      const found = /^checkpoint after step (\d+)$/m.exec(await logOf(forge.user, job_id));
      return isKept && found ? Number(found[1]) : undefined;
    },
    { timeoutMs: 60_000 },
  );
  await forge.stack.agents.get("box")?.kill();
  await forge.stack.startAgent("second");
  const job = await untilEnded(forge.user, job_id, 240_000);
  expect(job).toMatchObject({ status: "completed", attempts: 2 });
  const log = await logOf(forge.user, job_id);
  const stepsIn = (text: string): number[] =>
    [...text.matchAll(/^step (\d+) of/gm)].map(([, step]) => Number(step));
  const resumed = Number(/^resuming after step (\d+) of \d+$/m.exec(log)?.[1]);
  expect(resumed).toBeGreaterThanOrEqual(kept);
  expect(Math.min(...stepsIn(log))).toBeGreaterThan(resumed);
  made.trained = String(job.result?.checkpoint_id);
}, 300_000);

test(`evaluate: training of under ${MAX_TRAINING_S} s wins ${MARGIN} in exact answers`, async () => {
  const untrained = await runJob(forge.user, "train", {
    dataset_id: made.sft,
    model: "builtin:tiny",
    params: { max_steps: 0 },
  });
  const before = await runJob(forge.user, "evaluate", {
    checkpoint_id: untrained.result.checkpoint_id,
  });
  const after = await runJob(forge.user, "evaluate", { checkpoint_id: made.trained });
  const overall = (result: unknown): number => (result as Evaluation).scores.overall;
  expect(overall(after.result)).toBeGreaterThanOrEqual(overall(before.result) + MARGIN);
  const metrics = await fetch(
    `${forge.stack.apiUrl}/api/artifacts/${made.trained}/files/metrics.json`,
    { headers: { "x-service-api-key": forge.stack.keys.userKey } },
  );
  const { training_seconds: seconds } = (await metrics.json()) as { training_seconds: number };
  expect(seconds).toBeLessThan(MAX_TRAINING_S);
}, 120_000);

test("deploy: it answers, is a teacher, is restored by a restarted agent, and stopped by command", async () => {
  const { result } = await runJob(forge.user, "deploy", { checkpoint_id: made.trained });
  const url = String(result.inference_url);
  expect(await ask(url, "What is 17 + 25?")).toMatch(/42/);
  const answered = await runJob(forge.user, "generate", {
    task: "sums",
    size: 50,
    teacher: result.deployment_id,
    params: { prompts: TEACHER, seed: 99 },
  });
  const audit = await runJob(forge.user, "audit", { dataset_uri: answered.result.dataset_uri });
  const { correctness_mean } = audit.result.quality as { correctness_mean: number };
  expect(correctness_mean).toBeGreaterThan(MARGIN);

  await forge.stack.agents.get("second")?.kill();
  await expect(ask(url, "What is 1 + 1?")).rejects.toThrow();
  const stray = leaveStray(String(result.deployment_id));
  await forge.stack.startAgent("second");
  await waitFor("the restored model", () => ask(url, "What is 1 + 2?"), { timeoutMs: 60_000 });
  await waitFor("the stray to be stopped", () => !existsSync(stray), { timeoutMs: 60_000 });
  expect(await ask(url, "What is 21 + 14?")).toMatch(/35/);
}, 180_000);

/** As if the agent had deployed one more, for an attempt that was lost to another worker; its folder. */
function leaveStray(deploymentId: string): string {
  const agents = join(forge.stack.storeDir, "..", "agents");
  const folder = join(agents, "second", "slot-0", "deployments");
  const stray = join(folder, "dep_stray");
  cpSync(join(folder, deploymentId), stray, { recursive: true });
  const spec = JSON.parse(readFileSync(join(stray, "deployment.json"), "utf8")) as { port: number };
  const port = spec.port === 18_999 ? 18_000 : spec.port + 1;
  writeFileSync(join(stray, "deployment.json"), JSON.stringify({ ...spec, port }));
  return stray;
}

test("a teacher that nobody knows fails the job, and the words say which", async () => {
  const { job_id } = await forge.user.submit("generate", {
    task: "t",
    size: 1,
    teacher: "gpt-unknown",
  });
  const failed = await untilStatus(forge.user, job_id, ["failed"]);
  expect(failed).toMatchObject({ attempts: 1, error: expect.stringMatching(/gpt-unknown/) });
});
