/** The bucket is unavailable when Forge needs it, or the server dies between two writes to it. */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jobWorkflowId } from "../../core/workflow-ids";
import { canHaveS3Server, S3Server } from "../../dev/stack/s3-server";
import { saySilently } from "../../dev/stack/say";
import { waitFor } from "../../dev/stack/wait";
import { artifactOf } from "../support/artifacts";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilRetried } from "../support/jobs";
import { slowTest } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let s3: S3Server;
let worker: TestWorker;
const home = mkdtempSync(join(tmpdir(), "forge-away-"));

const ROWS = '{"a":1}\n{"a":2}\n';

(canHaveS3Server() ? describe : describe.skip)("an unavailable artifact store", () => {
  beforeAll(async () => {
    s3 = await S3Server.start(home, saySilently);
    mkdirSync(join(s3.directory, "forge-data"));
    forge = await startForge(
      {
        FORGE_STORE_URL: "s3://forge-data",
        ...s3.environment,
        FORGE_SWEEP_AFTER_S: "1",
        FORGE_SWEEP_INTERVAL_S: "0.5",
      },
      { own: ["server"] },
    );
    worker = await forge.worker("w");
  }, 120_000);

  afterEach(async () => {
    await forge.endTest();
  });

  afterAll(async () => {
    await forge?.stop();
    await s3?.process.stop();
    rmSync(home, { recursive: true, force: true });
  });

  const manifests = async (): Promise<string[]> =>
    (await forge.ctx.store.list("artifacts/"))
      .map(({ path }) => path)
      .filter((path) => path.endsWith("manifest.json"));

  /** The pending activities of the job's workflow. */
  async function describeJob(
    jobId: string,
  ): Promise<{ pendingActivities: { attempt?: number | null }[] }> {
    const handle = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
    const { raw } = await handle.describe();
    return { pendingActivities: raw.pendingActivities ?? [] };
  }

  async function oneManifest(jobId: string): Promise<void> {
    expect(await untilEnded(forge.user, jobId, 60_000)).toMatchObject({
      status: "completed",
      attempts: 1,
    });
    const { artifact_id: id, manifest } = await artifactOf(forge.user, jobId);
    expect(manifest).toMatchObject({ verified: true, num_rows: 2, attempt: 1 });
    expect((await manifests()).filter((path) => path.includes(id))).toHaveLength(1);
  }

  test("at completion: the job waits, nothing is lost, and one manifest is written when it is back", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    expect(await worker.upload(job, "scored.jsonl", ROWS)).toBe(201);
    await s3.process.stop();
    expect(await worker.complete(job, { artifacts_uri: null })).toMatchObject({ status: 200 });
    await untilRetried(forge, job_id);
    // The result is accepted: neither a cancel nor another worker can change it.
    expect(await forge.user.call("POST", `/api/jobs/${job_id}/cancel`, {})).toMatchObject({
      status: 409,
      body: { error: { code: "job_finalising" } },
    });
    expect(await forge.user.job(job_id)).toMatchObject({ status: "running" });
    await s3.start();
    await oneManifest(job_id);
  }, 90_000);

  test("during an upload: 503, the worker retries, and reads are 503 too", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    await s3.process.stop();
    expect(await worker.upload(job, "scored.jsonl", ROWS)).toBe(503);
    expect((await forge.user.call("GET", `/api/jobs/${job_id}/logs`)).status).toBe(503);
    await s3.start();
    expect(await worker.upload(job, "scored.jsonl", ROWS)).toBe(201);
    await worker.complete(job, { artifacts_uri: null });
    await oneManifest(job_id);
  }, 90_000);

  slowTest(
    "and a server that is killed twice in the meantime",
    async () => {
      const { job_id } = await forge.user.submit("audit", AUDIT);
      const job = await worker.take();
      await worker.upload(job, "scored.jsonl", ROWS);
      await s3.process.stop();
      await worker.complete(job, { artifacts_uri: null });
      await untilRetried(forge, job_id);
      await forge.stack.server?.kill();
      await forge.stack.startServer();
      await waitFor("it to try and fail again", async () => {
        const { pendingActivities } = await describeJob(job_id);
        return pendingActivities.some(({ attempt }) => (attempt ?? 0) > 1);
      });
      await forge.stack.server?.kill();
      await s3.start();
      await forge.stack.startServer();
      await oneManifest(job_id);
    },
    120_000,
  );

  test("when an artifact is deleted: its bytes are removed when it is back", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    await worker.upload(job, "scored.jsonl", ROWS);
    await worker.complete(job, { artifacts_uri: null });
    await untilEnded(forge.user, job_id);
    const { artifact_id: id } = await artifactOf(forge.user, job_id);
    await s3.process.stop();
    expect((await forge.user.call("DELETE", `/api/artifacts/${id}`)).status).toBe(200);
    await s3.start();
    await forge.stack.server?.stop();
    await forge.stack.startServer();
    await waitFor("the bytes to go", async () => {
      return (await forge.ctx.store.list(`artifacts/datasets/${id}/`)).length === 0;
    });
  }, 90_000);
});
