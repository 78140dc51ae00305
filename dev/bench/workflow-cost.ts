import { join } from "node:path";
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
} from "@temporalio/worker";
import { createActivities } from "../../activities";
import { DEFAULT_RATE_CARD } from "../../core/billing/rate-card";
import { NO_USAGE } from "../../core/billing/usage";
import { SUBMITTED_JOB_WORKFLOW } from "../../core/jobs/workflow";
import { jobWorkflowId } from "../../core/workflow-ids";
import { newId } from "../../platform/ids";
import { execute } from "../../platform/postgres/pool";
import { reserveArtifact } from "../../services/artifacts/artifacts";
import type { Context } from "../../services/context";
import { writeAttemptEnd } from "../../services/jobs/attempts";
import { insertJob } from "../../services/jobs/jobs";
import { newJob } from "../../services/jobs/new-job";
import { LOCAL_USER } from "../stack/secrets";

const TASK_QUEUE = "bench";
const IN_FLIGHT = 50;

export interface WorkflowCost {
  bareMs: number;
  jobMs: number;
  ratio: number;
}

/**
 * Compares the mean time of a job's workflow with that of a bare workflow with one activity. Both
 * run on the same server and worker, at most 50 at a time. A job's attempt has ended before its
 * workflow starts, as usual for short jobs. So the workflow only reads the attempt and does the
 * final writes.
 *
 * Each round runs a batch of bare workflows, then a batch of jobs' workflows. Other load on the
 * machine may slow down only one of the two batches and so distort the round's ratio. Therefore,
 * returns the round with the median ratio.
 */
export async function measureWorkflowCost(
  ctx: Context,
  total: number,
  rounds: number,
): Promise<WorkflowCost> {
  const jobs = await Promise.all(Array.from({ length: total }, (_, n) => endedJob(ctx, n)));
  Runtime.install({ logger: new DefaultLogger("ERROR") });
  const connection = await NativeConnection.connect(ctx.config.temporal.connection);
  const worker = await Worker.create({
    connection,
    taskQueue: TASK_QUEUE,
    workflowBundle: await bundleWorkflowCode({
      workflowsPath: join(__dirname, "workflows.js"),
      logger: new DefaultLogger("ERROR"),
    }),
    activities: { ...createActivities(ctx), nothing: async () => undefined },
    maxConcurrentActivityTaskExecutions: 50,
    maxConcurrentLocalActivityExecutions: 50,
  });
  return await worker.runUntil(async () => {
    const bare = (id: string) => runWorkflow(ctx, "bareWorkflow", `bare:${id}`, []);
    const job = (jobId: string) =>
      runWorkflow(ctx, SUBMITTED_JOB_WORKFLOW, jobWorkflowId(jobId), [
        { jobId, maxAttempts: 3, requestId: "bench" },
      ]);
    await inFlight(
      Array.from({ length: IN_FLIGHT }, (_, n) => `warm-up-${n}`),
      bare,
    );
    const size = Math.ceil(total / rounds);
    const costs: WorkflowCost[] = [];
    for (let round = 0; round < rounds; round++) {
      const batch = jobs.slice(round * size, (round + 1) * size);
      const bareMs = (await inFlight(batch, bare)) / batch.length;
      const jobMs = (await inFlight(batch, job)) / batch.length;
      costs.push({ bareMs, jobMs, ratio: jobMs / bareMs });
    }
    costs.sort((a, b) => a.ratio - b.ratio);
    const middle = costs[Math.floor(rounds / 2)];
    if (!middle) throw new Error("no round was measured");
    return middle;
  });
}

async function runWorkflow(
  ctx: Context,
  name: string,
  workflowId: string,
  args: unknown[],
): Promise<void> {
  await ctx.temporal.workflow.execute(name, { workflowId, taskQueue: TASK_QUEUE, args });
}

/** Calls `run` for each id, at most IN_FLIGHT at a time. Returns the elapsed time in ms. */
async function inFlight(ids: string[], run: (id: string) => Promise<void>): Promise<number> {
  const started = performance.now();
  const waiting = [...ids];
  const lane = async (): Promise<void> => {
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) await run(id);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  return performance.now() - started;
}

/** Creates a job whose only attempt has completed, in the state after job_result. */
async function endedJob(ctx: Context, n: number): Promise<string> {
  const workerId = `bench-${n}`;
  await execute(
    ctx.pool,
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status)
     values ($1, $2, false, 'cpu', 0, 0, '{cpu}', 'idle')`,
    [workerId, LOCAL_USER],
  );
  const artifactId = newId("ds");
  const job = newJob(ctx, {
    type: "audit",
    submission: {
      payload: { dataset_uri: "s3://bucket/data.parquet" },
      resources: {},
      params: {},
      tags: [],
      priority: 0,
      timeout_s: 60,
      max_attempts: 3,
    },
    userId: LOCAL_USER,
    createdBy: "bench",
    requestId: "bench",
  });
  const { job_id: jobId } = job;
  await insertJob(ctx.pool, {
    ...job,
    rate_card: DEFAULT_RATE_CARD,
    outputIds: { dataset_id: artifactId },
    startAfterS: 3600,
  });
  await execute(
    ctx.pool,
    `update attempts set state = 'running', worker_id = $2, started_at = now() where job_id = $1`,
    [jobId, workerId],
  );
  await execute(
    ctx.pool,
    "update jobs set status = 'running', attempts = 1, worker_id = $2 where job_id = $1",
    [jobId, workerId],
  );
  await reserveArtifact(ctx.pool, {
    artifactId,
    storageId: artifactId,
    userId: LOCAL_USER,
    jobId,
    attempt: 1,
    artifactType: "dataset",
    kind: "scored_dataset",
    uri: `forge://artifacts/datasets/${artifactId}/`,
    createdBy: "bench",
  });
  await writeAttemptEnd(ctx.pool, {
    jobId,
    attempt: 1,
    outcome: "completed",
    result: { dataset_id: artifactId },
    metrics: {},
    usage: { ...NO_USAGE, rows_processed: 1000 },
    leaseS: 3600,
  });
  return jobId;
}
