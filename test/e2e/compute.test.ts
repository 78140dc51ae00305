/** The reference handlers of all six types in sequence, on a CPU, through the control plane. */

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pythonEnvironment, pythonPath } from "../../dev/stack/python";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { logOf, runJob } from "../support/agent-jobs";
import {
  type Artifact,
  download,
  type Lineage,
  manifestErrors,
  sha256,
} from "../support/artifacts";
import { read, serving, stop } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilEnded, untilStatus } from "../support/jobs";
import { slowTest } from "../support/slow";

let forge: Forge;

const TEACHER = "builtin:sums";
/**
 * With these three settings, the trained model learns to give exact answers. The demo uses more
 * rows and the default learning rate.
 */
const ROWS = 3_000;
const EPOCHS = 8;
const LR = 0.004;
const isInGit =
  spawnSync("git", ["ls-files", "--error-unmatch", "compute/pyproject.toml"]).status === 0;
/**
 * The score of the trained model must be at least this much higher than the score of the untrained
 * model. A score is the fraction of the questions that a model answers exactly, from 0 to 1.
 */
const MARGIN = 0.5;
/** Limit of the training's CPU time. The job takes longer, because other tests share the cores. */
const MAX_TRAINING_S = 90;
const TRAINED_MS = 150_000;

beforeAll(async () => {
  await pythonEnvironment(saySilently, ["runtime", "train"]);
  forge = await startForge({ FORGE_HEARTBEAT_TIMEOUT_S: "10", HEARTBEAT_INTERVAL: "0.5" });
  await forge.stack.startAgent(agent);
}, 300_000);

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

/** The name of the agent that runs the next job. */
let agent = "box";

/** Ids of the artifacts that later jobs use, by name. */
const made: Record<string, string> = {};

interface Evaluation {
  scores: { overall: number };
}

interface Chat {
  choices: { message: { content: string } }[];
}

const training = () => ({
  dataset_id: made.sft,
  model: "builtin:tiny",
  epochs: EPOCHS,
  params: { checkpoint_every_s: 1, lr: LR },
});

/** Calls the deployment's stable address. */
async function ask(deploymentId: string, question: string): Promise<string> {
  const url = `${forge.stack.apiUrl}/api/deployments/${deploymentId}/v1/chat/completions`;
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "x-service-api-key": forge.user.key },
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

test("train: a checkpoint from that dataset", async () => {
  const { result } = await runJob(forge.user, "train", training(), TRAINED_MS);
  made.trained = String(result.checkpoint_id);
}, 180_000);

slowTest(
  "train: the next worker does not repeat the lost attempt's steps",
  async () => {
    const keptByAgent = (): number => {
      const agentLog = readFileSync(forge.stack.logFile(`agent-${agent}`), "utf8");
      return [...agentLog.matchAll(/checkpoint \S+ uploaded/g)].length;
    };
    // The agent's log already has the checkpoints of the previous training. Wait for a new one.
    const keptBefore = keptByAgent();
    const { job_id } = await forge.user.submit("train", training());
    const kept = await waitFor(
      "a stored checkpoint",
      async () => {
        const found = /^checkpoint after step (\d+)$/m.exec(await logOf(forge.user, job_id));
        return keptByAgent() > keptBefore && found ? Number(found[1]) : undefined;
      },
      { timeoutMs: 60_000 },
    );
    await forge.stack.agents.get(agent)?.kill();
    agent = "second";
    await forge.stack.startAgent(agent);
    const job = await untilEnded(forge.user, job_id, 240_000);
    expect(job).toMatchObject({ status: "completed", attempts: 2 });
    const log = await logOf(forge.user, job_id);
    const stepsIn = (text: string): number[] =>
      [...text.matchAll(/^step (\d+) of/gm)].map(([, step]) => Number(step));
    const resumed = Number(/^resuming after step (\d+) of \d+$/m.exec(log)?.[1]);
    expect(resumed).toBeGreaterThanOrEqual(kept);
    expect(Math.min(...stepsIn(log))).toBeGreaterThan(resumed);
  },
  300_000,
);

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
  // Limit the training's CPU time, not its duration, because other tests use the same cores.
  const times = (await metrics.json()) as { training_cpu_seconds: number };
  expect(times.training_cpu_seconds).toBeGreaterThan(0);
  expect(times.training_cpu_seconds).toBeLessThan(MAX_TRAINING_S);
}, 120_000);

test("deploy: it answers, and works as a teacher", async () => {
  const { result } = await runJob(forge.user, "deploy", { checkpoint_id: made.trained });
  const id = String(result.deployment_id);
  expect(await ask(id, "What is 17 + 25?")).toMatch(/42/);
  const answered = await runJob(forge.user, "generate", {
    task: "sums",
    size: 50,
    teacher: result.deployment_id,
    params: { prompts: TEACHER, seed: 99 },
  });
  const audit = await runJob(forge.user, "audit", { dataset_uri: answered.result.dataset_uri });
  const { correctness_mean } = audit.result.quality as { correctness_mean: number };
  expect(correctness_mean).toBeGreaterThan(MARGIN);
  made.deployment = id;
}, 120_000);

slowTest(
  "a restarted agent restores its deployment, and stops unexpected ones",
  async () => {
    const { deployment: id = "" } = made;
    await forge.stack.agents.get(agent)?.kill();
    await expect(ask(id, "What is 1 + 1?")).rejects.toThrow();
    const unexpected = addUnexpectedDeployment(id);
    await forge.stack.startAgent(agent);
    await waitFor("the restored model", () => ask(id, "What is 1 + 2?"), { timeoutMs: 60_000 });
    await waitFor("the unexpected deployment to be stopped", () => !existsSync(unexpected), {
      timeoutMs: 60_000,
    });
    expect(await ask(id, "What is 21 + 14?")).toMatch(/35/);
  },
  120_000,
);

slowTest(
  "a deployment whose agent is killed permanently is served by another, until it is stopped",
  async () => {
    const { deployment: id = "" } = made;
    await forge.stack.agents.get(agent)?.kill();
    agent = "third";
    await forge.stack.startAgent(agent);
    await waitFor("it to answer again", () => ask(id, "What is 1 + 2?"), { timeoutMs: 60_000 });
    expect(await ask(id, "What is 17 + 25?")).toMatch(/42/);
    expect(serving(await read(forge.user, id))).toEqual(["third"]);
    await stop(forge.user, id);
    await expect(ask(id, "What is 1 + 1?")).rejects.toThrow();
  },
  120_000,
);

/**
 * Copies a deployment in the agent's files, with another id and port. The control plane does not
 * expect the copy. This simulates a deployment that is left over from a lost attempt.
 *
 * @returns the copy's folder.
 */
function addUnexpectedDeployment(deploymentId: string): string {
  const agents = join(forge.stack.storeDir, "..", "agents");
  const folder = join(agents, agent, "slot-0", "deployments");
  const unexpected = join(folder, "dep_stray");
  cpSync(join(folder, deploymentId), unexpected, { recursive: true });
  const spec = JSON.parse(readFileSync(join(unexpected, "deployment.json"), "utf8")) as {
    port: number;
  };
  const port = spec.port === 18_999 ? 18_000 : spec.port + 1;
  writeFileSync(join(unexpected, "deployment.json"), JSON.stringify({ ...spec, port }));
  return unexpected;
}

/** Runs `forge …` like a user. @returns its exit code and output. */
function forgeCommand(python: string, ...args: string[]): { code: number | null; out: string } {
  const { status, stdout, stderr } = spawnSync(python, ["-m", "forge", ...args], {
    encoding: "utf8",
    env: {
      ...process.env,
      PYTHONPATH: pythonPath(),
      SERVICE_BASE_URL: forge.stack.apiUrl,
      SERVICE_API_KEY: forge.user.key,
    },
  });
  return { code: status, out: `${stdout}${stderr}` };
}

test("all results form one graph of verifiable artifacts; a flipped byte is detected", async () => {
  const python = await pythonEnvironment(saySilently, ["runtime", "train", "sdk"]);
  const trained = String(made.trained);
  const { nodes, edges } = await forge.user.get<Lineage>(`/api/artifacts/${trained}/lineage`);
  const artifacts = nodes.filter(({ type }) => type === "artifact");
  expect(new Set(artifacts.map(({ kind }) => kind))).toEqual(
    new Set([
      "raw_dataset",
      "scored_dataset",
      "distilled_dataset",
      "checkpoint",
      "evaluation_report",
      "deployment",
    ]),
  );
  const jobs = nodes.filter(({ type }) => type === "job").map(({ kind }) => kind);
  expect(new Set(jobs)).toEqual(
    new Set(["generate", "audit", "distill", "train", "evaluate", "deploy"]),
  );
  // Follow the edges from the first dataset. They must reach every artifact.
  const reached = new Set(
    artifacts
      .filter(({ kind }) => kind === "raw_dataset")
      .slice(0, 1)
      .map(({ id }) => id),
  );
  for (let before = 0; before < reached.size; ) {
    before = reached.size;
    for (const { from, to } of edges) if (reached.has(from)) reached.add(to);
  }
  expect(artifacts.filter(({ id }) => !reached.has(id))).toEqual([]);

  for (const { id } of artifacts) {
    const { manifest } = await forge.user.get<Artifact>(`/api/artifacts/${id}`);
    expect([id, manifestErrors(manifest)]).toEqual([id, []]);
    expect([id, manifest.contradictions]).toEqual([id, []]);
    expect(manifest.verified).toBe(true);
    // The manifest names the checkout's commit, or null if the tests don't run in a git checkout.
    expect(String(manifest.git_commit)).toMatch(isInGit ? /^[0-9a-f]{40}(-dirty)?$/ : /^null$/);
    for (const file of manifest.files) {
      const { bytes } = await download(forge.user, `/api/artifacts/${id}/files/${file.path}`);
      expect([file.path, sha256(bytes)]).toEqual([file.path, file.sha256]);
    }
    expect(forgeCommand(python, "artifacts", "verify", id)).toMatchObject({ code: 0 });
  }
  const model = join(forge.stack.storeDir, "artifacts", "checkpoints", trained, "model.pt");
  const bytes = readFileSync(model);
  const at = Math.floor(bytes.length / 2);
  const flip = (): void => {
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(model, bytes);
  };
  flip();
  const verified = forgeCommand(python, "artifacts", "verify", trained);
  expect(verified).toMatchObject({ code: 1, out: expect.stringMatching(/changed +model\.pt/) });
  flip();
  expect(forgeCommand(python, "artifacts", "verify", trained)).toMatchObject({ code: 0 });
  const tree = forgeCommand(python, "artifacts", "lineage", trained);
  expect(tree).toMatchObject({ code: 0, out: expect.stringContaining("builtin:tiny") });
}, 120_000);

slowTest(
  "a cancelled training ends at once, and the worker takes the next job",
  async () => {
    const { job_id } = await forge.user.submit("train", {
      dataset_id: made.sft,
      model: "builtin:tiny",
      epochs: 500,
    });
    await waitFor("its first steps", async () =>
      /^step \d+ of/m.test(await logOf(forge.user, job_id)),
    );
    await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
    expect(await untilEnded(forge.user, job_id)).toMatchObject({ error_code: "cancelled" });
    const next = await forge.user.submit("audit", { dataset_uri: "s3://nowhere/rows.parquet" });
    expect(await untilEnded(forge.user, next.job_id)).toMatchObject({ attempts: 1 });
  },
  120_000,
);

test("an unknown teacher fails the job, and the error names it", async () => {
  const { job_id } = await forge.user.submit("generate", {
    task: "t",
    size: 1,
    teacher: "gpt-unknown",
  });
  const failed = await untilStatus(forge.user, job_id, ["failed"]);
  expect(failed).toMatchObject({ attempts: 1, error: expect.stringMatching(/gpt-unknown/) });
});
