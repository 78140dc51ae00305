import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  await forge?.stop();
});

interface Estimate {
  expected_usd: number;
  low_usd: number;
  high_usd: number;
  duration_s: number | null;
  steps: { name: string; job_type: string; expected_usd: number; basis: string; samples: number }[];
}

const PIPELINE = {
  template: "byo-data",
  params: { audit: AUDIT, distill: { teacher: "t" }, train: { model: "m", resources: { gpu: 1 } } },
};

test("a pipeline is estimated step by step, and nothing is submitted", async () => {
  const { user } = await createTenant(forge, "planner");
  const estimate = await user.post<Estimate>("/api/pipelines/estimate", PIPELINE);
  expect(estimate.steps.map(({ name }) => name)).toEqual([
    "audit",
    "distill",
    "train",
    "evaluate",
    "deploy",
  ]);
  expect(estimate.steps.map(({ basis }) => basis)).toEqual([
    ...["prior", "prior", "prior", "prior"],
    "payload",
  ]);
  const sum = estimate.steps.reduce((total, step) => total + step.expected_usd, 0);
  expect(estimate.expected_usd).toBeCloseTo(sum, 6);
  expect(estimate.low_usd).toBeLessThan(estimate.expected_usd);
  expect(estimate.high_usd).toBeGreaterThan(estimate.expected_usd);
  expect(estimate.duration_s).toBeNull();
  // A step has the same estimate as a single job with the same payload.
  const train = await user.post<{ expected_usd: number }>("/api/billing/estimate", {
    job_type: "train",
    payload: { dataset_id: "d", model: "m", resources: { gpu: 1 } },
  });
  expect(estimate.steps[2]?.expected_usd).toBe(train.expected_usd);
  expect(await all(forge.ctx.pool, "select from pipelines where user_id = 'planner'")).toEqual([]);
});

test("earlier jobs determine the expected cost and duration", async () => {
  const { user, worker } = await createTenant(forge, "experienced");
  const own = worker("experienced-worker");
  await own.register();
  const { job_id } = await user.submit("audit", AUDIT);
  await own.complete(await own.take(), { metrics: { rows_processed: 5_000 } });
  await untilEnded(user, job_id);
  await all(
    forge.ctx.pool,
    "update jobs set started_at = completed_at - interval '100 s' where job_id = $1",
    [job_id],
  );
  const step = (name: string, needs: string[] = []) => {
    return { name, job_type: "audit", payload: AUDIT, needs };
  };
  const steps = [step("first"), step("beside"), step("last", ["first"])];
  const estimate = await user.post<Estimate>("/api/pipelines/estimate", { steps });
  expect(estimate.steps[0]).toMatchObject({ expected_usd: 1, basis: "history", samples: 1 });
  expect(estimate.expected_usd).toBe(3);
  // The longest chain, `first` and `last`, has two jobs of 100 s each.
  expect(estimate.duration_s).toBeCloseTo(200, 0);
});

test("an invalid pipeline gets the same error as its submission", async () => {
  const body = { ...PIPELINE, gates: [{ step: "nothing", condition: "scores.overall > 1" }] };
  const [estimate, submission] = [
    await forge.user.call("POST", "/api/pipelines/estimate", body),
    await forge.user.call("POST", "/api/pipelines", body),
  ];
  expect(estimate.status).toBe(400);
  const errorOf = ({ body: answer }: { body: unknown }) => {
    const { request_id: _, ...error } = (answer as { error: Record<string, unknown> }).error;
    return error;
  };
  expect(errorOf(estimate)).toEqual(errorOf(submission));
});
