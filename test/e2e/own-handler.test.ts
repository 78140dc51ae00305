/** A user's own commands, as in docs/agent.md, with the real agent. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkoutRoot } from "../../dev/stack/paths";
import { waitFor } from "../../dev/stack/wait";
import { logOf, runJob } from "../support/agent-jobs";
import { artifactOf } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;
const folder = mkdtempSync(join(tmpdir(), "forge-own-handler-"));

const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: folder, encoding: "utf8" }).trim();

/** Returns the code blocks in this language from a Markdown file, from top to bottom. */
function blocksOf(document: string, language: string): string[] {
  const text = readFileSync(join(checkoutRoot(), document), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(
    ([, block = ""]) => block,
  );
}

beforeAll(async () => {
  const [toml = ""] = blocksOf("docs/agent.md", "toml");
  const [python = ""] = blocksOf("docs/agent.md", "python");
  const shell = blocksOf("docs/agent.md", "sh").find((block) => block.startsWith("#!")) ?? "";
  expect(python.split("\n").filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(20);
  writeFileSync(join(folder, "handler.py"), python);
  writeFileSync(join(folder, "audit.sh"), shell);
  writeFileSync(
    join(folder, "agent.toml"),
    `${toml}\n[handlers.audit]\ncommand = "sh ${join(folder, "audit.sh")}"\nenv = { NOTE = "from the file" }\n`,
  );
  git("init", "-q");
  git("add", ".");
  git("-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "handlers");
  forge = await startForge({ HEARTBEAT_INTERVAL: "0.5", FORGE_HEARTBEAT_TIMEOUT_S: "10" });
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
  rmSync(folder, { recursive: true });
});

const withOwnHandlers = { FORGE_AGENT_CONFIG: join(folder, "agent.toml") };

async function upload(): Promise<{ dataset_id: string; dataset_uri: string }> {
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: {
      "x-service-api-key": forge.stack.keys.userKey,
      "content-type": "application/x-ndjson",
    },
    body: '{"q": "why?"}\n{"q": "what?"}\n',
  });
  return (await response.json()) as { dataset_id: string; dataset_uri: string };
}

test("the Python handler of the documentation trains, reports and uploads its files", async () => {
  await forge.stack.startAgent("own", withOwnHandlers);
  const { dataset_id } = await upload();
  const job = await runJob(forge.user, "train", { dataset_id, model: "my-model", epochs: 1 });
  expect(job.result).toMatchObject({ training_steps: 10, checkpoint_id: expect.any(String) });
  expect(await logOf(forge.user, job.job_id)).toMatch(
    /^training my-model from step 0 on \{'dataset_id': '.+'\}\n\[forge\] uploaded 1 files, 7 bytes\n$/,
  );
  const { artifacts } = await forge.user.get<{
    artifacts: { manifest: { verified: boolean; files: { path: string }[] } }[];
  }>(`/api/jobs/${job.job_id}/artifacts`);
  expect(artifacts).toMatchObject([
    { manifest: { verified: true, files: [{ path: "model.pt", size_bytes: 7 }] } },
  ]);
  expect(await forge.user.get(`/api/billing/records/${job.job_id}`)).toMatchObject({
    // The worker has no GPU, so the GPU time that the handler reports is not billed.
    metrics: { gpu_hours: 0 },
    attempts: [{ gpu_hours_reported: 0.1 }],
  });
});

test("killed half-way, it continues from its last checkpoint on the next worker", async () => {
  const agentLog = (): string => readFileSync(forge.stack.logFile("agent-own"), "utf8");
  // Skip the log so far: it shows the checkpoints of the previous job, too.
  const { length: before } = agentLog();
  const { job_id } = await forge.user.submit("train", { dataset_id: "d", model: "m", epochs: 6 });
  const keptStep = await waitFor("a checkpoint", async () => {
    const found = /checkpoint step-(\d+).json uploaded/.exec(agentLog().slice(before));
    return found ? Number(found[1]) : undefined;
  });
  await forge.stack.agents.get("own")?.kill();
  await forge.stack.startAgent("second", withOwnHandlers);
  const job = await untilEnded(forge.user, job_id);
  expect(job).toMatchObject({ status: "completed", attempts: 2, result: { training_steps: 60 } });
  const from = /from step (\d+)/.exec(await logOf(forge.user, job_id))?.[1];
  expect(Number(from)).toBeGreaterThanOrEqual(keptStep);
});

test("the shell handler of the documentation audits, and needs no result file", async () => {
  const { dataset_uri } = await upload();
  const job = await runJob(forge.user, "audit", { dataset_uri });
  expect(await logOf(forge.user, job.job_id)).toMatch(/^auditing 29 bytes\n/);
  expect(await forge.user.get(`/api/billing/records/${job.job_id}`)).toMatchObject({
    metrics: { rows_processed: 2 },
  });
  const { manifest } = await artifactOf(forge.user, job.job_id);
  expect(manifest.git_commit).toBe(git("rev-parse", "HEAD"));
});

test("a worker gets only the types and tenants that its owner allows, and the job shows this as its reason", async () => {
  await forge.stack.agents.get("second")?.stop();
  for (const gone of ["own", "second"]) await forge.user.call("DELETE", `/api/workers/${gone}`);
  const agent = await forge.stack.startAgent("picky", {
    ...withOwnHandlers,
    ALLOW_JOB_TYPES: "audit",
  });
  const train = await forge.user.submit("train", { dataset_id: "d", model: "m", epochs: 1 });
  const { dataset_uri } = await upload();
  await runJob(forge.user, "audit", { dataset_uri });
  // The server computes the reason from a copy of the fleet's state that may be a second old.
  await waitFor("the reason", async () => {
    const { pending_reason } = (await forge.user.job(train.job_id)) as unknown as {
      pending_reason: { message: string };
    };
    return (
      pending_reason.message ===
      "needs a worker that takes train jobs; the nearest worker has audit"
    );
  });
  await agent.stop();
  const other = await createTenant(forge, "other");
  await forge.stack.startAgent("shared", {
    ...withOwnHandlers,
    SERVICE_API_KEY: forge.stack.keys.adminKey,
    ALLOW_TENANTS: "other",
  });
  const foreign = await other.user.submit("train", { dataset_id: "d", model: "m", epochs: 1 });
  expect(await untilEnded(other.user, foreign.job_id)).toMatchObject({ status: "completed" });
  expect(await forge.user.job(train.job_id)).toMatchObject({ status: "pending" });
  await forge.user.post(`/api/jobs/${train.job_id}/cancel`, {});
});

test("several slots are several workers, each with its own job", async () => {
  await forge.stack.startAgent("wide", { ...withOwnHandlers, WORKER_SLOTS: "3" });
  const body = { dataset_id: "d", model: "m", epochs: 2 };
  const submitted = await Promise.all([1, 2, 3].map(() => forge.user.submit("train", body)));
  const jobs = await Promise.all(submitted.map(({ job_id }) => untilEnded(forge.user, job_id)));
  expect(new Set(jobs.map((job) => job.worker_id))).toEqual(
    new Set(["wide-0", "wide-1", "wide-2"]),
  );
});
