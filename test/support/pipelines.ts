import type { ApiClient } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import type { Forge } from "./forge";
import { backdateStart } from "./jobs";
import type { DispatchedJob, TestWorker } from "./test-worker";

export interface PipelineStep {
  name: string;
  job_type: string;
  status: string;
  job_id: string | null;
  job_status: string | null;
  cost_usd: number | null;
  reused: boolean;
  started_at: string | null;
  completed_at: string | null;
  gate?: { condition: string; passed: boolean | null; values: Record<string, unknown> };
  approval?: {
    approved: boolean | null;
    by: string | null;
    at: string | null;
    note: string | null;
  };
  chosen?: { step: string; by: string; value: number } | null;
  error: string | null;
  error_code: string | null;
}

export interface Pipeline {
  pipeline_id: string;
  status: string;
  run: number;
  error: string | null;
  error_code: string | null;
  cost_usd: number;
  budget_state: string | null;
  estimated_cost_usd: number | null;
  expected_remaining_s: number | null;
  steps: PipelineStep[];
}

/** A dataset that is never read. */
export const URI = "s3://team-data/secret-place.parquet";

/** A pipeline with all steps of the template `byo-data`, with minimal parameters. */
export const BYO_DATA = {
  template: "byo-data",
  params: {
    audit: { dataset_uri: URI },
    distill: { teacher: "t" },
    train: { model: "m", epochs: 1 },
  },
};

export const OVER = ["completed", "failed", "cancelled"];

export const readPipeline = (api: ApiClient, id: string): Promise<Pipeline> =>
  api.get<Pipeline>(`/api/pipelines/${id}`);

export async function untilPipeline(
  api: ApiClient,
  id: string,
  statuses: string[] = OVER,
  timeoutMs = 60_000,
): Promise<Pipeline> {
  return await waitFor(
    `${id} to be ${statuses.join(" or ")}`,
    async () => {
      const pipeline = await readPipeline(api, id);
      return statuses.includes(pipeline.status) && pipeline;
    },
    { timeoutMs },
  );
}

/** Submits a pipeline. @returns its id. */
export async function startPipeline(api: ApiClient, body: unknown): Promise<string> {
  return (await api.post<Pipeline>("/api/pipelines", body)).pipeline_id;
}

export const stepOf = (pipeline: Pipeline, name: string): PipelineStep => {
  const step = pipeline.steps.find((each) => each.name === name);
  if (!step) throw new Error(`${pipeline.pipeline_id} has no step ${name}`);
  return step;
};

/** The status of each step, by name. */
export const statusesOf = (pipeline: Pipeline): Record<string, string> =>
  Object.fromEntries(pipeline.steps.map(({ name, status }) => [name, status]));

/** What a worker reports for a job. */
export type Work = (job: DispatchedJob) => {
  result?: Record<string, unknown>;
  metrics?: Record<string, number>;
  error?: string;
};

/**
 * The results that the usual handlers report: the id of their output, and the numbers that gates
 * need.
 */
export const usualWork: Work = ({ job_type: type, output_ids: ids }) => {
  const [id = ""] = Object.values(ids);
  switch (type) {
    case "generate":
      return {
        result: { dataset_id: id, dataset_uri: `forge://artifacts/datasets/${id}/raw.jsonl` },
        metrics: { tokens_generated: 1_000_000 },
      };
    case "audit":
      return { result: { quality: { clarity_mean: 0.8 } }, metrics: { rows_processed: 1_000 } };
    case "distill":
      return { metrics: { tokens_generated: 1_000_000 } };
    case "train":
      return { metrics: { gpu_hours: 1 } };
    case "evaluate":
      return { result: { scores: { overall: 0.9 } }, metrics: { samples_evaluated: 100 } };
    default:
      return { result: { inference_url: "http://127.0.0.1:9/v1" } };
  }
};

/** Workers that complete every job until they are stopped. */
export class WorkerPool {
  readonly dispatched: DispatchedJob[] = [];
  private stopped = false;
  private working: Promise<void>[] = [];
  private readonly workers: TestWorker[] = [];

  constructor(
    private readonly forge: Forge,
    public work: Work = usualWork,
    /** Whether the workers upload a file for each job. Each file has different content. */
    private readonly leavesFiles = false,
  ) {}

  async start(count = 2, name = "crew"): Promise<this> {
    for (let n = 1; n <= count; n++) {
      const worker = await this.forge.worker(`${name}-${n}`, {
        name: "NVIDIA A100-SXM4-80GB",
        memory_gb: 80,
      });
      worker.startHeartbeats();
      this.workers.push(worker);
      this.working.push(this.keepWorking(worker));
    }
    return this;
  }

  private async keepWorking(worker: TestWorker): Promise<void> {
    while (!this.stopped) {
      const job = await worker.next(1).catch(() => undefined);
      if (!job) continue;
      this.dispatched.push(job);
      if (job.job_type === "train") await backdateStart(this.forge, job, 1);
      const { error, ...done } = this.work(job);
      if (this.leavesFiles) await worker.upload(job, "content.txt", job.job_id);
      const report =
        error === undefined ? () => worker.complete(job, done) : () => worker.fail(job, { error });
      await waitFor("the result to be taken", async () => (await report()).status < 500);
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all(this.working);
    for (const worker of this.workers) worker.stopHeartbeats();
    // Make the workers unavailable, so that they can't be assigned the next test's jobs.
    const ids = this.workers.map(({ id }) => id);
    const quiet = "update workers set available_until = null where worker_id = any($1)";
    await execute(this.forge.ctx.pool, quiet, [ids]);
  }
}
