import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ApiClient, type Attempt } from "../api-client";
import { checkoutRoot } from "../stack/paths";
import { pythonEnvironment } from "../stack/python";
import type { Say } from "../stack/say";
import type { Stack } from "../stack/stack";
import { waitFor } from "../stack/wait";
import type { Artifact, BillingRecord, Chat, Deployment, Lineage, Pipeline, Step } from "./api";
import { isOver, Narrator } from "./narrator";
import { printBill, printLineage, printTimeline } from "./report";

const ROWS = 4_000;
const TEACHER = "builtin:sums";
const QUESTION = "What is 17 + 25?";
const ANSWER = "42";

/** Checks a claim of the demo. A false claim ends the demo with exit code 1. */
function check(say: Say, holds: boolean, what: string): void {
  if (!holds) throw new Error(`check failed: ${what}`);
  say(`  ok  ${what}`);
}

/** Runs a pipeline from an uploaded dataset to a deployed model, and kills a worker on the way. */
export async function runStory(
  stack: Stack,
  say: Say,
  findViolations: () => Promise<string[]>,
): Promise<void> {
  const api = new ApiClient(stack.apiUrl, stack.keys.userKey);
  const uri = await uploadSample(stack, api, say);
  const pipelineId = await submit(stack, api, say, uri);
  const narrator = new Narrator(say);
  const until = (what: string, holds: (pipeline: Pipeline) => boolean): Promise<Pipeline> =>
    waitFor(
      what,
      async () => {
        const pipeline = await api.get<Pipeline>(`/api/pipelines/${pipelineId}`);
        narrator.report(pipeline);
        if (isOver(pipeline) && !holds(pipeline)) throw new Error(`it is ${pipeline.status}`);
        return holds(pipeline) && pipeline;
      },
      { timeoutMs: 240_000, everyMs: 200 },
    );

  await until("a quarter of the training", (pipeline) => {
    const train = stepOf(pipeline, "train");
    return train.status === "running" && (train.progress ?? 0) >= 0.25 && hasCheckpoint(stack);
  });
  say("\nKilling the training worker with SIGKILL, and starting another");
  await stack.agents.get("local-1")?.kill();
  await stack.startAgent("local-2");
  say(
    "  the control plane marks it lost after 6 s without a heartbeat; training resumes from the checkpoint …",
  );

  await until("deploy to wait for its approval", ({ status }) => status === "waiting_approval");
  say("\nApproving the deployment");
  await api.post(`/api/pipelines/${pipelineId}/approve`, { step: "deploy", note: "good enough" });
  const done = await until("the pipeline's end", isOver);
  const deployment = await askModel(api, say, done);

  say("\nStopping the deployment");
  const path = `/api/deployments/${deployment.deployment_id}`;
  await api.post(`${path}/stop`, {});
  const stopped = await waitFor(
    "the deployment to be stopped",
    async () => {
      const now = await api.get<Deployment>(path);
      return now.status === "stopped" && now;
    },
    { timeoutMs: 60_000 },
  );
  say(`  ${stopped.status}`);

  const attempts = new Map<string, Attempt[]>();
  for (const { name, job_id } of done.steps) attempts.set(name, await api.attempts(job_id ?? ""));
  printTimeline(say, done, attempts);
  const lineage = await api.get<Lineage>(`/api/artifacts/${deployment.deployment_id}/lineage`);
  printLineage(say, lineage, deployment.deployment_id);
  const records = await Promise.all(
    done.steps.map(({ job_id }) => api.get<BillingRecord>(`/api/billing/records/${job_id}`)),
  );
  printBill(say, records);

  say("\nChecks");
  const trained = attempts.get("train") ?? [];
  check(say, done.status === "completed", "the pipeline completed");
  check(
    say,
    trained.map(({ outcome }) => outcome).join() === "worker_lost,completed",
    "the first attempt of training lost its worker, and the second one completed",
  );
  check(say, trained[1]?.worker_id === "local-2", "the second worker ran the second attempt");
  check(
    say,
    /^resuming after step \d+/m.test(await logOf(api, stepOf(done, "train").job_id)),
    "it resumed from the first attempt's checkpoint",
  );
  check(
    say,
    records.every(({ state }) => state === "final"),
    "every bill is final, including the deployment's",
  );
  const { artifacts } = await api.get<{ artifacts: Artifact[] }>(
    `/api/jobs/${stepOf(done, "train").job_id}/artifacts`,
  );
  const manifest = artifacts[0]?.manifest;
  check(
    say,
    manifest?.attempt === 2 && manifest.verified && manifest.pipeline?.step === "train",
    "the checkpoint's manifest is from attempt 2, and its files are verified",
  );
  const violations = await findViolations();
  check(say, violations.length === 0, `invariants I1-I7 hold ${violations.join("; ")}`.trimEnd());
}

async function uploadSample(stack: Stack, api: ApiClient, say: Say): Promise<string> {
  say(
    `\nCreating and uploading a sample dataset of ${ROWS} questions and answers, some of them wrong`,
  );
  const script = join(checkoutRoot(), "dev", "sample-data", "generate.py");
  const out = join(stack.storeDir, "..", "sums.parquet");
  const python = await pythonEnvironment(say);
  const args = [script, "--rows", String(ROWS), "--topic", "sums", "--out", out];
  await promisify(execFile)(python, args);
  const response = await fetch(`${stack.apiUrl}/api/datasets?name=sums`, {
    method: "POST",
    headers: {
      "x-service-api-key": api.key,
      "content-type": "application/vnd.apache.parquet",
    },
    body: readFileSync(out),
  });
  const { dataset_id: id, dataset_uri: uri } = (await response.json()) as {
    dataset_id: string;
    dataset_uri: string;
  };
  say(`  ${id}`);
  return uri;
}

async function submit(stack: Stack, api: ApiClient, say: Say, uri: string): Promise<string> {
  say("\nSubmitting a byo-data pipeline over HTTP with a user key");
  const { pipeline_id: id } = await api.post<Pipeline>("/api/pipelines", {
    template: "byo-data",
    name: "sums",
    params: {
      audit: { dataset_uri: uri },
      distill: { teacher: TEACHER, params: { min_score: 0.5 } },
      train: { model: "builtin:tiny", epochs: 15, params: { checkpoint_every_s: 1 } },
    },
    gates: [
      { step: "audit", condition: "quality.correctness_mean >= 0.9" },
      { step: "evaluate", condition: "scores.overall >= 0.7" },
    ],
    approvals: ["deploy"],
    budget_usd: 5,
  });
  say(`  ${id}: audit → distill → train → evaluate → deploy`);
  say("\nYou can open these while the demo runs");
  say(`  pipeline     ${stack.apiUrl}/api/pipelines/${id}`);
  say(`  API docs     ${stack.apiUrl}/docs/`);
  say(`  Temporal UI  ${stack.temporalUiUrl}/namespaces/default/workflows/pipeline:${id}\n`);
  return id;
}

/** Sends a request to the deployed model through the control plane's proxy. */
async function askModel(api: ApiClient, say: Say, pipeline: Pipeline): Promise<Deployment> {
  const job = await api.job(stepOf(pipeline, "deploy").job_id ?? "");
  const id = String(job.result?.deployment_id);
  const deployment = await api.get<Deployment>(`/api/deployments/${id}`);
  say(`\nAsking the deployed model at ${deployment.url}`);
  say(`  ${QUESTION}`);
  const { choices } = await api.post<Chat>(`/api/deployments/${id}/v1/chat/completions`, {
    messages: [{ role: "user", content: QUESTION }],
    temperature: 0,
  });
  const answer = choices[0]?.message.content ?? "";
  say(`  ${answer}`);
  check(say, answer.includes(ANSWER), `it answers ${ANSWER}`);
  return deployment;
}

const hasCheckpoint = (stack: Stack): boolean =>
  /checkpoint \S+ uploaded/.test(readFileSync(stack.logFile("agent-local-1"), "utf8"));

async function logOf(api: ApiClient, jobId: string | null): Promise<string> {
  const response = await fetch(`${api.baseUrl}/api/jobs/${jobId}/logs`, {
    headers: { "x-service-api-key": api.key },
  });
  return await response.text();
}

function stepOf({ steps }: Pipeline, name: string): Step {
  const step = steps.find((each) => each.name === name);
  if (!step) throw new Error(`the pipeline has no step ${name}`);
  return step;
}
