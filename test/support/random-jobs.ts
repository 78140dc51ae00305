import { createHash } from "node:crypto";
import type { SimulatedJob } from "../../dev/simulator/worker";

export type Metrics = Record<string, number>;

/** Numbers from 0 to 1 that the same words give again. */
function diceOf(...words: (string | number)[]): () => number {
  let at = 0;
  return () => {
    const digest = createHash("sha256")
      .update(`${words.join(":")}:${at++}`)
      .digest();
    return digest.readUInt32BE(0) / 2 ** 32;
  };
}

const pick = <T>(dice: () => number, from: readonly T[]): T =>
  from[Math.floor(dice() * from.length)] as T;

const URI = "s3://team/data.parquet";

/** What jobs of each type are submitted with; the dearest of them seldom, for it goes on. */
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
/** On workers that stay: each end of one has it placed anew, by a job that nobody submitted. */
const DEPLOYMENT: [string, object] = [
  "deploy",
  { checkpoint_id: "ckpt", resources: { tags: ["normal"] } },
];
const DEPLOYMENTS = 0.04;
/** None after the first submissions: whenever the server is away for long, each live one is placed anew. */
const LAST_DEPLOYMENT = 300;

const TAGS = ["red", "green", "blue", "night run", "ünïcode", "a,b", '"quoted"'];

export interface RandomJob {
  type: string;
  body: object;
  isCancelled: boolean;
}

/** The n-th submission. */
export function randomJob(n: number): RandomJob {
  const dice = diceOf("job", n);
  const [type, body] =
    dice() < DEPLOYMENTS && n < LAST_DEPLOYMENT ? DEPLOYMENT : pick(dice, BODIES);
  const tags = TAGS.filter(() => dice() < 0.25);
  return { type, body: { ...body, tags }, isCancelled: dice() < 0.06 };
}

/** GPU hours: none at all, a little, far above what can be, and nothing said. */
const HOURS = [0, 0.1, 1e-9, 1 / 3, 12.345678901, 1_000_000, undefined, undefined];
const COUNTS = [0, 1, 999, 1_234.5, 1_000_000, 987_654_321, 1e11];
const FIELDS = ["tokens_generated", "tokens_used", "rows_processed", "samples_evaluated"];

/** What the worker that has the attempt says it used; the same, however often it is asked. */
export function reportedBy({
  job_id: id,
  attempt,
}: Pick<SimulatedJob, "job_id" | "attempt">): Metrics {
  const dice = diceOf("usage", id, attempt);
  const hours = pick(dice, HOURS);
  const metrics: Metrics = hours === undefined ? {} : { gpu_hours: hours };
  for (const field of FIELDS) if (dice() < 0.7) metrics[field] = pick(dice, COUNTS) * dice();
  if (dice() < 0.3) metrics.input_tokens = Math.round(dice() * 1e6);
  if (dice() < 0.3) metrics.output_tokens = Math.round(dice() * 1e6);
  // Not for it to say.
  if (dice() < 0.1) metrics.deployment_lifetime_days = 1_000;
  return metrics;
}

/** How its attempt ends: done, or failed for now, or failed for good. */
export function endOf(job: SimulatedJob): object {
  const metrics = reportedBy(job);
  const luck = diceOf("end", job.job_id, job.attempt)();
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

export const gpuOf = (workerId: string) => pick(diceOf("gpu", workerId), GPUS);
