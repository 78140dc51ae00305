import { type Forge, startForge } from "../support/forge";
import { AUDIT, backdateStart, untilEnded } from "../support/jobs";

const A100 = { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 };

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_TRAIN_NEEDS_GPU: "true" });
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

describe("a job of each type", () => {
  const forms: [type: string, body: Record<string, unknown>, payload: Record<string, unknown>][] = [
    [
      "generate",
      { task: "sums", size: 10, teacher: "t" },
      { task: "sums", size: 10, teacher: "t" },
    ],
    [
      "generate",
      { domain: "law", num_samples: 5 },
      { task: "synthesize", size: 5, teacher: "builtin:mixed", domain: "law" },
    ],
    ["audit", AUDIT, AUDIT],
    ["distill", { dataset_id: "ds_x", teacher: "t" }, { dataset_id: "ds_x", teacher: "t" }],
    [
      "distill",
      { teacher_model: "t", student_model: "s", dataset_uri: "s3://b/k" },
      { teacher: "t", student_model: "s", dataset_uri: "s3://b/k" },
    ],
    ["train", { dataset_id: "ds_x", model: "m" }, { dataset_id: "ds_x", model: "m", epochs: 3 }],
    [
      "train",
      { model_id: "m", dataset_uri: "s3://b/k", epochs: 2 },
      { model: "m", dataset_uri: "s3://b/k", epochs: 2 },
    ],
    ["evaluate", { checkpoint_id: "c" }, { checkpoint_id: "c" }],
    ["evaluate", { model_id: "c", benchmark: "b" }, { checkpoint_id: "c", benchmark: "b" }],
    ["deploy", { checkpoint_id: "c" }, { checkpoint_id: "c" }],
    ["deploy", { model_id: "c", region: "r" }, { checkpoint_id: "c", region: "r" }],
  ];

  test.each(forms)(
    "%s %j is normalised, run, billed and described",
    async (type, body, payload) => {
      const worker = await forge.worker("gpu-box");
      await worker.register(A100, { tags: ["r"] });
      const submitted = await forge.user.submit(type, body);
      expect(submitted).toMatchObject({ status: "pending", attempts: 0, payload });

      const dispatched = await worker.take();
      expect(dispatched).toMatchObject({
        job_id: submitted.job_id,
        job_type: type,
        payload,
        attempt: 1,
      });
      const metrics = {
        gpu_hours: 2,
        tokens_generated: 2e6,
        rows_processed: 3000,
        samples_evaluated: 400,
      };
      await backdateStart(forge, dispatched, 2);
      expect((await worker.complete(dispatched, { metrics })).status).toBe(200);

      const job = await untilEnded(forge.user, submitted.job_id);
      expect(job).toMatchObject({ status: "completed", attempts: 1, worker_id: "gpu-box" });
      const expectedCost: Record<string, number> = {
        generate: 0.6,
        audit: 0.6,
        distill: 0.6,
        train: 2.5,
        evaluate: 0.4,
        deploy: 0,
      };
      const record = await forge.user.get(`/api/billing/records/${job.job_id}`);
      expect(record).toMatchObject({ job_type: type, total_cost_usd: expectedCost[type] });
      const { artifacts } = await forge.user.get<{ artifacts: { manifest: object }[] }>(
        `/api/jobs/${job.job_id}/artifacts`,
      );
      expect(artifacts).toHaveLength(1);
      expect(artifacts[0]?.manifest).toMatchObject({
        source_jobs: [job.job_id],
        attempt: 1,
        cost_estimate_usd: expectedCost[type],
        // The worker reported a store that Forge can't read.
        verified: false,
      });
    },
  );

  test("a deployment goes to a worker of its region, and waits if there is none", async () => {
    const body = { model_id: "c", region: "eu-west-1" };
    const elsewhere = await forge.worker("elsewhere");
    await elsewhere.register(A100, { tags: ["us-east-1"] });
    const { job_id: jobId } = await forge.user.submit("deploy", body);
    expect(await elsewhere.next()).toBeUndefined();
    expect(await forge.user.get(`/api/jobs/${jobId}`)).toMatchObject({
      status: "pending",
      pending_reason: {
        code: "no_worker_fits",
        requirement: { name: "tags", needed: "eu-west-1" },
      },
    });
    const there = await forge.worker("there");
    await there.register(A100, { tags: ["eu-west-1"] });
    const dispatched = await there.take();
    expect(dispatched.job_id).toBe(jobId);
    await there.complete(dispatched);
    await untilEnded(forge.user, jobId);
  });

  test("the month's summary adds them up", async () => {
    const summary = await forge.user.get<{ total_cost_usd: number; by_job_type: object }>(
      "/api/billing/summary",
    );
    expect(summary.by_job_type).toEqual({
      generate: 1.2,
      audit: 0.6,
      distill: 1.2,
      train: 5,
      evaluate: 0.8,
      // The deployment accrues from its start until now.
      deploy: expect.closeTo(0, 3),
    });
    expect(summary.total_cost_usd).toBeCloseTo(8.8, 3);
  });
});
