import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { loadConfig } from "../infra/config";
import { closeContext, createContext } from "../infra/context";
import { createLogger } from "../infra/logger";
import { ApiClient, type Attempt, type Job } from "./api-client";
import { checkInvariants } from "./invariants";
import { endLeftovers } from "./stack/leftovers";
import { checkoutRoot } from "./stack/paths";
import { pythonEnvironment } from "./stack/python";
import { sayOnStderr as say } from "./stack/say";
import { Stack } from "./stack/stack";
import { waitFor } from "./stack/wait";

const ROWS = 120_000;
const DATASET = "artifacts/samples/checkable-tasks.parquet";
const FAST_FLEET = { FORGE_HEARTBEAT_TIMEOUT_S: "6", HEARTBEAT_INTERVAL: "1" };

/** What the demo claims; one that does not hold makes it exit 1. */
function claim(holds: boolean, what: string): void {
  if (!holds) throw new Error(`this should be so, and is not: ${what}`);
  say(`  ok  ${what}`);
}

async function makeDataset(stack: Stack): Promise<void> {
  say(`Making the sample dataset: ${ROWS} instruction/response rows …`);
  const script = join(checkoutRoot(), "dev", "sample-data", "generate.py");
  const out = join(stack.storeDir, DATASET);
  const python = await pythonEnvironment(say);
  await promisify(execFile)(python, [script, "--rows", String(ROWS), "--out", out]);
}

/** Says each change of status and, now and then, the progress. */
function narrator(): (job: Job) => void {
  let lastStatus = "";
  let lastShown = 0;
  return (job) => {
    const now = new Date().toISOString().slice(11, 23);
    const status = `${job.status} ${job.attempts}`;
    if (status !== lastStatus) {
      const where = job.status === "running" ? ` on ${job.worker_id}, attempt ${job.attempts}` : "";
      say(`  ${now}  ${job.status}${where}`);
      lastStatus = status;
      lastShown = 0;
    }
    const progress = Math.floor((job.progress ?? 0) * 10) / 10;
    if (job.status === "running" && progress > lastShown) {
      say(`  ${now}    ${Math.round(progress * 100)} % of the rows`);
      lastShown = progress;
    }
  };
}

async function runDemo(stack: Stack): Promise<void> {
  await stack.start();
  await makeDataset(stack);
  const api = new ApiClient(stack.apiUrl, stack.keys.userKey);

  say("\nSubmitting an audit over HTTP, with a user's key");
  const submitted = await api.submit("audit", { dataset_uri: `forge://${DATASET}` });
  const jobId = submitted.job_id;
  say(`  ${jobId}`);
  const narrate = narrator();
  narrate(submitted);
  const follow = async (): Promise<Job> => {
    const job = await api.job(jobId);
    narrate(job);
    return job;
  };
  const until = (what: string, holds: (job: Job) => boolean): Promise<Job> =>
    waitFor(
      what,
      async () => {
        const job = await follow();
        return holds(job) && job;
      },
      { timeoutMs: 60_000, everyMs: 100 },
    );

  const half = await until("half of the audit", (job) => (job.progress ?? 0) >= 0.3);
  claim(half.status === "running" && half.attempts === 1, "the first attempt is half-way");
  say("\nKilling its agent with SIGKILL, and starting another");
  await stack.agents.get("local-1")?.kill();
  await stack.startAgent("local-2");
  say("  the control plane will notice after 6 s without a heartbeat …");

  const done = await until("the job's end", (job) => ["completed", "failed"].includes(job.status));
  const attempts = await api.attempts(jobId);
  const record = await api.get<BillingRecord>(`/api/billing/records/${jobId}`);
  const { artifacts } = await api.get<{ artifacts: Artifact[] }>(`/api/jobs/${jobId}/artifacts`);
  const [artifact] = artifacts;
  const manifest = await api.get<Manifest>(`/api/artifacts/${artifact?.artifact_id}/manifest`);

  say("\nEach change of status");
  for (const line of changesOf(attempts, done)) say(`  ${line}`);
  say("\nAttempts");
  for (const attempt of attempts) say(`  ${describeAttempt(attempt)}`);
  say("\nBill");
  say(`  ${record.formula}   (rate card "${record.rate_card}")`);
  say("\nManifest");
  say(JSON.stringify(manifest, null, 2).replaceAll(/^/gm, "  "));
  say("\nArtifact");
  say(`  ${join(stack.storeDir, (artifact?.uri ?? "").replace("forge://", ""))}`);
  say("\nWorkflow in the Temporal UI (while the demo runs)");
  say(`  ${stack.temporalUiUrl}/namespaces/default/workflows/job:${jobId}`);

  say("\nIs all of it true?");
  claim(done.status === "completed", "the job completed");
  claim(
    attempts.map((attempt) => attempt.outcome).join() === "worker_lost,completed",
    "attempt 1 was lost with its worker, attempt 2 completed",
  );
  claim(attempts[1]?.worker_id === "local-2", "the second agent did it");
  claim(record.metrics.rows_processed === ROWS, `the bill is for ${ROWS} rows`);
  claim(record.total_cost_usd === (ROWS / 1000) * 0.2, `and for ${record.total_cost_usd} USD`);
  claim(manifest.attempt === 2 && manifest.verified, "the manifest is attempt 2's, files verified");
  claim(artifacts.length === 1, "there is one artifact");
  const violations = await violationsOf(stack);
  claim(violations.length === 0, `invariants I1-I7 hold ${violations.join("; ")}`.trimEnd());
}

interface BillingRecord {
  formula: string;
  rate_card: string;
  total_cost_usd: number;
  metrics: { rows_processed: number };
}

interface Artifact {
  artifact_id: string;
  uri: string;
}

interface Manifest {
  attempt: number;
  verified: boolean;
}

const clockTime = (time: string | null): string => time?.slice(11, 23) ?? "-";

/** The job's whole way through its statuses, by the database's clock. */
function changesOf(attempts: Attempt[], job: Job): string[] {
  const changes = attempts.flatMap((attempt) => [
    `${clockTime(attempt.queued_at)}  pending`,
    `${clockTime(attempt.assigned_at)}  assigned to ${attempt.worker_id}`,
    `${clockTime(attempt.started_at)}  running, attempt ${attempt.attempt}`,
  ]);
  return [...changes, `${clockTime(job.completed_at)}  ${job.status}`];
}

function describeAttempt(attempt: Attempt): string {
  const head = `${attempt.attempt}  ${attempt.worker_id}  ${attempt.outcome}`;
  const error = attempt.error ? `\n     ${attempt.error}` : "";
  return `${head}  at ${clockTime(attempt.ended_at)}${error}`;
}

async function violationsOf(stack: Stack): Promise<string[]> {
  const { config } = loadConfig({
    FORGE_DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
  const ctx = createContext(config, createLogger("silent"));
  try {
    return await checkInvariants({ ...ctx, storeDir: stack.storeDir });
  } finally {
    await closeContext(ctx);
  }
}

/** `npm run demo`: a stack of its own, one audited dataset, one murdered agent; nothing stays running. */
async function main(): Promise<void> {
  const home = resolve(process.env.FORGE_HOME ?? ".forge", "demo");
  // Ends what a demo that was killed left running, before its files go.
  endLeftovers(home);
  rmSync(home, { recursive: true, force: true });
  const stack = new Stack({ home, agents: 1, env: FAST_FLEET });
  const cleanUp = (): Promise<void> => stack.stop();
  const onSignal = (): void => void cleanUp().then(() => process.exit(130));
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  const started = performance.now();
  try {
    await runDemo(stack);
    const seconds = Math.round((performance.now() - started) / 1000);
    say(`\nThe demo is done, in ${seconds} s. Stopping everything it started …`);
  } finally {
    await cleanUp();
  }
}

main().catch((error: unknown) => {
  say(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
