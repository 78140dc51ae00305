/**
 * Every job shows the location of its log, whether the job completes or fails. A manifest names the
 * model and the dataset that the artifact was made from.
 */

import type { ApiClient, Job } from "../../dev/api-client";
import { deploy, servingWorker, stop } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilEnded, untilStatus } from "../support/jobs";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;
let user: ApiClient;

const GENERATE = { task: "t", size: 1, teacher: "builtin:arithmetic" };

beforeAll(async () => {
  forge = await startForge();
  user = forge.user;
  worker = await forge.worker("w", { name: "NVIDIA H100 80GB", memory_gb: 80 });
});

afterEach(async () => {
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

describe("a job links to its stored log", () => {
  const uriOf = (job: DispatchedJob): string =>
    `forge://artifacts/logs/${job.job_id}/attempt-${job.attempt}.log`;

  const append = (job: DispatchedJob, text: string, from = 0): Promise<number> =>
    worker.log(job, text, from);

  async function run(more: object = {}): Promise<DispatchedJob> {
    await user.submit("generate", { ...GENERATE, ...more });
    const job = await worker.take();
    expect(await append(job, "first words\n")).toBe(202);
    return job;
  }

  const ended = async (job: DispatchedJob): Promise<Job> => await untilEnded(user, job.job_id);

  test("while it runs", async () => {
    await user.submit("generate", GENERATE);
    const job = await worker.take();
    expect((await user.job(job.job_id)).logs_uri).toBeNull();
    await append(job, "first\n");
    expect((await user.job(job.job_id)).logs_uri).toBe(uriOf(job));
    expect(await append(job, "second\n", "first\n".length)).toBe(202);
    // A worker may also store its log in another place, and report the log's URI.
    await worker.complete(job, { logs_uri: "s3://own/log.txt" });
    expect((await ended(job)).logs_uri).toBe("s3://own/log.txt");
  });

  test("when it completes or fails, and the worker does not report it", async () => {
    const made = await run();
    await worker.complete(made, { logs_uri: undefined });
    expect((await ended(made)).logs_uri).toBe(uriOf(made));
    const failed = await run();
    await worker.fail(failed);
    expect((await ended(failed)).logs_uri).toBe(uriOf(failed));
  });

  test("when its worker is lost, until the next attempt has a log", async () => {
    const lost = await run({ max_attempts: 2 });
    await worker.register({ name: "NVIDIA H100 80GB", memory_gb: 80 });
    await untilStatus(user, lost.job_id, ["pending", "assigned"]);
    expect((await user.job(lost.job_id)).logs_uri).toBe(uriOf(lost));
    const again = await worker.take();
    expect([again.job_id, again.attempt]).toEqual([lost.job_id, 2]);
    await append(again, "once more\n");
    expect((await user.job(lost.job_id)).logs_uri).toBe(uriOf(again));
    await worker.register({ name: "NVIDIA H100 80GB", memory_gb: 80 });
    expect(await ended(lost)).toMatchObject({
      error_code: "worker_lost",
      logs_uri: uriOf(again),
    });
  });

  test("when it times out, and when it is cancelled", async () => {
    const slow = await run({ timeout_s: 1 });
    expect(await ended(slow)).toMatchObject({ error_code: "timeout", logs_uri: uriOf(slow) });
    await worker.register({ name: "NVIDIA H100 80GB", memory_gb: 80 });
    const unwanted = await run();
    await user.call("POST", `/api/jobs/${unwanted.job_id}/cancel`);
    await worker.fail(unwanted);
    expect(await ended(unwanted)).toMatchObject({
      error_code: "cancelled",
      logs_uri: uriOf(unwanted),
    });
  });
});

describe("manifests name what an artifact came from", () => {
  interface Described {
    status?: string;
    base_model: string | null;
    dataset_used: string | null;
    training_steps?: number | null;
  }
  const manifestOf = async (jobId: string): Promise<Described & Record<string, unknown>> => {
    const { artifacts } = await user.get<{ artifacts: { manifest: Described }[] }>(
      `/api/jobs/${jobId}/artifacts`,
    );
    return { ...artifacts[0]?.manifest } as Described & Record<string, unknown>;
  };

  async function made(type: string, body: object, result: object): Promise<string> {
    const { job_id } = await user.submit(type, body);
    await worker.complete(await worker.take(), { result });
    await untilEnded(user, job_id);
    return job_id;
  }

  beforeAll(async () => {
    const train = { dataset_id: "pairs", model: "builtin:tiny", resources: { gpu: 1 } };
    await made("train", train, { checkpoint_id: "trained", training_steps: 40 });
  });

  test.each([
    [{}, "pairs"],
    [{ benchmark: "mine" }, "mine"],
  ])("an evaluation's with %j", async (more, dataset) => {
    const id = await made("evaluate", { checkpoint_id: "trained", ...more }, {});
    expect(await manifestOf(id)).toMatchObject({
      base_model: "builtin:tiny",
      dataset_used: dataset,
      training_steps: 40,
    });
  });

  test("of an unregistered checkpoint they contain nothing", async () => {
    const id = await made("evaluate", { checkpoint_id: "unheard-of" }, {});
    expect(await manifestOf(id)).toMatchObject({
      ...{ base_model: null, dataset_used: null, training_steps: null },
    });
  });

  test("a deployment's; and after its stop also its servers and its cost", async () => {
    const server = await servingWorker(forge, "server");
    await user.call("POST", "/api/workers/w/drain");
    const served = await deploy(user, { checkpoint_id: "trained" });
    const provenance = { base_model: "builtin:tiny", dataset_used: "pairs", training_steps: 40 };
    expect(await manifestOf(served.job_id)).toMatchObject({
      ...provenance,
      status: "active",
      inference_url: served.inference_url,
    });
    const { deployment_id: id } = await stop(user, served.deployment_id);
    await server.die();
    const { total_cost_usd, metrics } = await user.get<{
      total_cost_usd: number;
      metrics: { deployment_lifetime_days: number };
    }>(`/api/billing/records/${served.job_id}`);
    const { deployment_lifetime_days: days } = metrics;
    expect(days).toBeGreaterThan(0);
    const last = {
      ...provenance,
      status: "stopped",
      inference_url: served.inference_url,
      cost_estimate_usd: total_cost_usd,
      metrics: expect.objectContaining({ deployment_lifetime_days: days }),
    };
    await forge.proveInvariants();
    expect(await manifestOf(served.job_id)).toMatchObject(last);
    expect(await user.get(`/api/artifacts/${id}/manifest`)).toMatchObject(last);
  });
});
