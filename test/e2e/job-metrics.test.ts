import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { writeMetrics } from "../../services/jobs/job-metrics";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { createTenant } from "../support/tenants";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_JOB_METRICS_S: "0.2" });
});

afterAll(async () => {
  await forge?.stop();
});

interface Metrics {
  job_id: string;
  attempt: number;
  at: string[];
  series: Record<string, (number | null)[]>;
}

const read = (jobId: string, query = "", api = forge.user): Promise<Metrics> =>
  api.get<Metrics>(`/api/jobs/${jobId}/metrics${query}`);

async function running(id: string): Promise<{ worker: TestWorker; job: DispatchedJob }> {
  const worker = await forge.worker(id);
  await forge.user.submit("audit", AUDIT);
  return { worker, job: await worker.take() };
}

/** Backdates all points. */
const later = (seconds: number): Promise<number> =>
  execute(forge.ctx.pool, "update job_metrics set at = at - make_interval(secs => $1)", [seconds]);

const countOf = async (jobId: string): Promise<number> =>
  (await all(forge.ctx.pool, "select from job_metrics where job_id = $1", [jobId])).length;

test("heartbeats become series, with at most one point every 10 s", async () => {
  const { worker, job } = await running("reporting");
  const heartbeat = (progress: number, metrics: object) =>
    worker.heartbeat({ job_id: job.job_id, attempt: 1, progress, metrics });
  await heartbeat(0.1, { loss: 3.5, step: 10, name: "no number" });
  await waitFor("the first point", async () => (await read(job.job_id)).at.length === 1);
  const report = { job_id: job.job_id, attempt: 1, worker_id: "reporting", progress: 0.2 };
  expect(await writeMetrics(forge.ctx.pool, [{ ...report, metrics: { loss: 2.5 } }])).toBe(0);
  await later(11);
  await heartbeat(0.3, { loss: 1.5, "eval/acc": 0.9 });
  const shown = await waitFor("the second point", async () => {
    const metrics = await read(job.job_id);
    return metrics.at.length === 2 && metrics;
  });
  expect(shown).toMatchObject({
    job_id: job.job_id,
    attempt: 1,
    series: {
      progress: [0.1, 0.3],
      loss: [3.5, 1.5],
      step: [10, null],
      "eval/acc": [null, 0.9],
    },
  });
  expect(Date.parse(shown.at[1] ?? "")).toBeGreaterThan(Date.parse(shown.at[0] ?? ""));
  await worker.complete(job);
});

test("only the reports of the worker that runs the attempt are kept", async () => {
  const { worker, job } = await running("honest");
  const liar = await forge.worker("liar");
  await liar.heartbeat({ job_id: job.job_id, attempt: 1, progress: 0.9, metrics: { loss: 0 } });
  await worker.heartbeat({ job_id: job.job_id, attempt: 2, progress: 0.9, metrics: { loss: 0 } });
  const report = { job_id: job.job_id, attempt: 1, progress: null, metrics: { loss: 1 } };
  expect(await writeMetrics(forge.ctx.pool, [{ ...report, worker_id: "liar" }])).toBe(0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await countOf(job.job_id)).toBe(0);
  await worker.complete(job);
  // A report after the attempt's end is not written.
  expect(await writeMetrics(forge.ctx.pool, [{ ...report, worker_id: "honest" }])).toBe(0);
});

test("of many points, every n-th and the last are shown; a long attempt writes fewer", async () => {
  const { worker, job } = await running("long");
  await execute(
    forge.ctx.pool,
    `insert into job_metrics (job_id, attempt, at, metrics)
     select $1, 1, now() - make_interval(secs => 10 * (100 - n)), jsonb_build_object('n', n)
     from generate_series(1, 100) n`,
    [job.job_id],
  );
  expect((await read(job.job_id)).series.n).toHaveLength(100);
  const few = (await read(job.job_id, "?max_points=10")).series.n ?? [];
  expect(few).toEqual([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
  expect((await read(job.job_id, "?max_points=1")).series.n).toEqual([100]);
  await execute(
    forge.ctx.pool,
    "update attempts set started_at = started_at - interval '5 days' where job_id = $1",
    [job.job_id],
  );
  const report = { job_id: job.job_id, attempt: 1, worker_id: "long", progress: 1, metrics: {} };
  await later(100);
  expect(await writeMetrics(forge.ctx.pool, [report])).toBe(0);
  await later(400);
  expect(await writeMetrics(forge.ctx.pool, [report])).toBe(1);
  await worker.complete(job);
});

test("another tenant's job is not found, and a job without reports has no series", async () => {
  const { user } = await createTenant(forge, "curious");
  const { job_id } = await forge.user.submit("train", {
    dataset_id: "d",
    model: "m",
    resources: { gpu: 8 },
  });
  expect(await read(job_id)).toEqual({ job_id, attempt: 1, at: [], series: {} });
  expect((await user.call("GET", `/api/jobs/${job_id}/metrics`)).status).toBe(404);
});
