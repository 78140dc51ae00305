import { createHash } from "node:crypto";
import type { SimulatedJob } from "../../dev/simulator/worker";

export type Metrics = Record<string, number>;

/** Pseudo-random numbers from 0 to 1. `words` is the seed: equal words give equal numbers. */
function seededRandom(...words: (string | number)[]): () => number {
  let at = 0;
  return () => {
    const digest = createHash("sha256")
      .update(`${words.join(":")}:${at++}`)
      .digest();
    return digest.readUInt32BE(0) / 2 ** 32;
  };
}

const pick = <T>(random: () => number, from: readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T;

const URI = "s3://team/data.parquet";

/** Bodies for jobs of each type, except deployments. */
const BODIES: [string, object][] = [
  ["generate", { task: "questions", size: 100, teacher: "t" }],
  ["generate", { domain: "law", num_samples: 7 }],
  ["audit", { dataset_uri: URI }],
  ["audit", { dataset_uri: URI, max_attempts: 1 }],
  ["distill", { dataset_uri: URI, teacher: "t" }],
  ["distill", { dataset_id: "ds", teacher: "t" }],
  ["train", { dataset_id: "ds", model: "m", epochs: 2 }],
  ["train", { dataset_id: "ds", model: "m", epochs: 1, resources: { gpu: 2 } }],
  ["train", { dataset_id: "ds", model: "m", epochs: 1, resources: { gpu_type: "A100" } }],
  ["evaluate", { checkpoint_id: "ckpt" }],
  ["evaluate", { checkpoint_id: "ckpt", benchmark: "b" }],
];
/**
 * The tag restricts deploy jobs to workers that stay alive. Otherwise, Forge would add a job for
 * each model server that is lost with its worker.
 */
const DEPLOYMENT: [string, object] = [
  "deploy",
  { checkpoint_id: "ckpt", resources: { tags: ["normal"] } },
];
const DEPLOYMENTS = 0.04;
/**
 * From this submission number on, there are no deploy jobs. This limits the number of active
 * deployments. More deployments would mean more jobs after a long outage of forge-server, because
 * Forge then adds jobs that replace the model servers of all active deployments.
 */
const LAST_DEPLOYMENT = 300;

const TAGS = ["red", "green", "blue", "night run", "ünïcode", "a,b", '"quoted"'];

export interface RandomJob {
  type: string;
  body: object;
  isCancelled: boolean;
}

/** The n-th submission. */
export function randomJob(n: number): RandomJob {
  const random = seededRandom("job", n);
  const [type, body] =
    random() < DEPLOYMENTS && n < LAST_DEPLOYMENT ? DEPLOYMENT : pick(random, BODIES);
  const tags = TAGS.filter(() => random() < 0.25);
  return { type, body: { ...body, tags }, isCancelled: random() < 0.06 };
}

/** GPU hours: zero, small, implausibly large, and not reported. */
const HOURS = [0, 0.1, 1e-9, 1 / 3, 12.345678901, 1_000_000, undefined, undefined];
const COUNTS = [0, 1, 999, 1_234.5, 1_000_000, 987_654_321, 1e11];
const FIELDS = ["tokens_generated", "tokens_used", "rows_processed", "samples_evaluated"];

/** The usage that the attempt's worker reports. Deterministic per attempt. */
export function reportedBy({
  job_id: id,
  attempt,
}: Pick<SimulatedJob, "job_id" | "attempt">): Metrics {
  const random = seededRandom("usage", id, attempt);
  const hours = pick(random, HOURS);
  const metrics: Metrics = hours === undefined ? {} : { gpu_hours: hours };
  for (const field of FIELDS) if (random() < 0.7) metrics[field] = pick(random, COUNTS) * random();
  if (random() < 0.3) metrics.input_tokens = Math.round(random() * 1e6);
  if (random() < 0.3) metrics.output_tokens = Math.round(random() * 1e6);
  // Forge computes this field itself, so a bill must ignore the value that a worker reports.
  if (random() < 0.1) metrics.deployment_lifetime_days = 1_000;
  return metrics;
}

/** How the job's attempt ends: completed, failed and retryable, or failed without a retry. */
export function endOf(job: SimulatedJob): object {
  const metrics = reportedBy(job);
  const luck = seededRandom("end", job.job_id, job.attempt)();
  if (luck < 0.12) return { status: "failed", error: "out of luck", retryable: true, metrics };
  if (luck < 0.16) return { status: "failed", error: "out of memory", metrics };
  const result = job.job_type === "deploy" ? { inference_url: "http://127.0.0.1:9/v1" } : {};
  return { status: "completed", result, metrics };
}

const GPUS = [
  { name: "cpu", memory_gb: 0 },
  { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80, count: 2 },
  { name: "NVIDIA H100 80GB HBM3", memory_gb: 80, count: 8 },
];

export const gpuOf = (workerId: string) => pick(seededRandom("gpu", workerId), GPUS);
