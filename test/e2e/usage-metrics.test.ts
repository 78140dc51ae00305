/**
 * Every metric of spec.md 2.5 is on its job's record, either reported by the worker or counted by
 * Forge.
 */

import { type BillingRecord, billed, readRecord, recomputeCheck } from "../support/billing";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

const ROWS = 1_200;
const CSV = `n\n${Array.from({ length: ROWS }, (_, n) => n).join("\n")}\n`;
const GENERATE = { task: "t", size: 10, teacher: "builtin:arithmetic" };
const DISTILL = { dataset_id: "theirs", teacher: "llama-70b" };

let datasetUri: string;
let datasetId: string;

beforeAll(async () => {
  forge = await startForge();
  worker = await forge.worker("w", { name: "NVIDIA H100 80GB", memory_gb: 80 });
  const response = await fetch(`${forge.stack.apiUrl}/api/datasets`, {
    method: "POST",
    headers: { "x-service-api-key": forge.user.key, "content-type": "text/csv" },
    body: CSV,
  });
  const dataset = (await response.json()) as { dataset_id: string; dataset_uri: string };
  [datasetId, datasetUri] = [dataset.dataset_id, dataset.dataset_uri];
});

afterAll(async () => {
  await forge?.proveInvariants();
  expect((await recomputeCheck(forge)).code).toBe(0);
  await forge?.stop();
});

const recordOf = async (
  type: string,
  body: object,
  metrics: Record<string, unknown>,
): Promise<BillingRecord> =>
  await billed(forge, { user: forge.user, worker }, [type, body], metrics);

test.each<[string, object, Record<string, unknown>, Record<string, unknown>]>([
  [
    "generate",
    GENERATE,
    { tokens_generated: 70, teacher_model: "builtin:arithmetic-2", duration_sec: 12.5 },
    { tokens_generated: 70, teacher_model: "builtin:arithmetic-2", duration_sec: 12.5 },
  ],
  [
    "audit",
    AUDIT,
    { rows_processed: 7, tokens_used: 30, duration_sec: 1 },
    { rows_processed: 7, tokens_used: 30, duration_sec: 1 },
  ],
  [
    "distill",
    DISTILL,
    { tokens_generated: 70, input_tokens: 5, num_pairs: 9 },
    { tokens_generated: 70, tokens_used: 75, num_pairs: 9, teacher_model: "llama-70b" },
  ],
  [
    "train",
    { dataset_id: "d", model: "m", resources: { gpu: 1 } },
    { gpu_hours: 0, gpu_type: "H100", num_steps: 40, dataset_size: 90 },
    { gpu_hours: 0, gpu_type: "H100", num_steps: 40, dataset_size: 90 },
  ],
  [
    "evaluate",
    { checkpoint_id: "c" },
    { samples_evaluated: 50, tokens_used: 400 },
    { samples_evaluated: 50, tokens_used: 400 },
  ],
])("the record of a %s job has the worker's metrics", async (type, body, reported, expected) => {
  const record = await recordOf(type, body, reported);
  expect(record.metrics).toMatchObject({ duration_sec: expect.any(Number), ...expected });
  expect(Object.keys(record.unit_costs)).toEqual(
    expect.arrayContaining([
      "gpu_hour",
      "generation_per_1m_tokens",
      "audit_per_1k_rows",
      "eval_per_100_samples",
    ]),
  );
});

test("if a worker reports nothing, the record has what the control plane knows", async () => {
  const generated = await recordOf("generate", GENERATE, {});
  expect(generated.metrics).toMatchObject({ teacher_model: GENERATE.teacher, tokens_used: 0 });
  expect(generated.metrics.duration_sec).toBeGreaterThan(0);
  const train = { dataset_id: datasetId, model: "m", resources: { gpu: 1 } };
  const trained = await recordOf("train", train, {});
  expect(trained.metrics).toMatchObject({ gpu_type: "NVIDIA H100 80GB", dataset_size: ROWS });
  expect(trained.metrics).not.toHaveProperty("num_steps");
});

test.each([-1, "12", Number.MAX_VALUE, null, {}])(
  "a detail of %p counts as unreported, and does not keep the job from ending",
  async (nonsense) => {
    const metrics = { gpu_hours: 0, duration_sec: nonsense, num_steps: nonsense, gpu_type: 7 };
    const train = { dataset_id: "d", model: "m", resources: { gpu: 1 } };
    const record = await recordOf("train", train, metrics);
    expect(record.metrics.duration_sec).toBeLessThan(60);
    expect(record.metrics).toMatchObject({ gpu_type: "NVIDIA H100 80GB" });
    expect(record.metrics).not.toHaveProperty("num_steps");
  },
);

describe("if a worker does not report them, Forge counts and bills", () => {
  test("the rows of the dataset that an audit reads", async () => {
    const record = await recordOf("audit", { dataset_uri: datasetUri }, { gpu_hours: 0 });
    expect(record).toMatchObject({
      metrics: { rows_processed: ROWS },
      total_cost_usd: 0.24,
      formula: `(${ROWS} rows / 1000) x 0.20 = 0.24 USD`,
      flags: ["rows_not_reported"],
    });
  });

  test("the rows of the table that an audit created, if its input is not registered", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    expect(await worker.upload(job, "scored.csv", CSV)).toBe(201);
    await worker.complete(job, { metrics: {} });
    await untilEnded(forge.user, job_id);
    const record = await readRecord(forge.user, job_id);
    expect(record).toMatchObject({ metrics: { rows_processed: ROWS }, total_cost_usd: 0.24 });
  });

  test("the pairs of a distilled dataset, even against the worker's report", async () => {
    const { job_id } = await forge.user.submit("distill", DISTILL);
    const job = await worker.take();
    expect(await worker.upload(job, "sft.csv", CSV)).toBe(201);
    await worker.complete(job, { metrics: { num_pairs: 5 } });
    await untilEnded(forge.user, job_id);
    expect((await readRecord(forge.user, job_id)).metrics).toMatchObject({ num_pairs: ROWS });
  });

  test.each([
    [{}, ROWS, 1.2],
    [{ limit: 100 }, 100, 0.1],
  ])("the rows of an evaluation's benchmark with params %j", async (params, samples, usd) => {
    const body = { checkpoint_id: "c", benchmark: datasetId, params };
    const record = await recordOf("evaluate", body, {});
    expect(record).toMatchObject({
      metrics: { samples_evaluated: samples },
      total_cost_usd: usd,
      flags: expect.arrayContaining(["samples_not_reported"]),
    });
  });

  test("but a reported 0 counts", async () => {
    const body = { dataset_uri: datasetUri };
    const record = await recordOf("audit", body, { rows_processed: 0, gpu_hours: 0 });
    expect(record).toMatchObject({ metrics: { rows_processed: 0 }, total_cost_usd: 0, flags: [] });
  });
});

test("a record under a metered card has all four unit costs, too", async () => {
  const prices = {
    ...{ basis: "metered", gpuHour: { default: "2.50" }, inputPer1mTokens: "10.00" },
    ...{ outputPer1mTokens: "30.00", storagePerGbMonth: "0", deployPerMonth: "3" },
  };
  await forge.admin.post("/api/admin/rate-cards", { name: "by-use", prices });
  const assigned = { rate_card: "by-use" };
  const { user_id } = await forge.user.get<{ user_id: string }>("/api/auth/ping");
  await forge.admin.call("PUT", `/api/admin/users/${user_id}/rate-card`, assigned);
  const record = await recordOf("audit", AUDIT, { rows_processed: 1_000, gpu_hours: 0 });
  expect(record.unit_costs).toMatchObject({
    gpu_hour: 2.5,
    generation_per_1m_tokens: 0,
    audit_per_1k_rows: 0,
    eval_per_100_samples: 0,
  });
});
