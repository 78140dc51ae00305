import { jobWorkflowId } from "../../core/workflow-ids";
import type { Answer, Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilStatus } from "../support/jobs";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

const GRACE_S = 2;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_CANCEL_GRACE_S: String(GRACE_S),
      FORGE_HEARTBEAT_TIMEOUT_S: "8",
      FORGE_ASSIGNMENT_TIMEOUT_S: "5",
      FORGE_DEAF_AFTER_S: "60",
    },
    { own: ["temporal"] },
  );
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const cancel = (jobId: string): Promise<Answer<Job & { error: { code: string } }>> =>
  forge.user.call("POST", `/api/jobs/${jobId}/cancel`);

const CANCELLED = { status: "failed", error_code: "cancelled" };

async function running(
  name: string,
  gpu?: { name: string; memory_gb: number },
): Promise<{ worker: TestWorker; jobId: string; job: DispatchedJob }> {
  const worker = await forge.worker(name, gpu);
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  expect(job.job_id).toBe(jobId);
  return { worker, jobId, job };
}

const workerStatus = async (id: string): Promise<{ status: string; error_code: string | null }> =>
  await forge.user.get(`/api/workers/${id}`);

describe("cancel of a job that", () => {
  test("is pending ends it with the response, and no worker gets it", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const answer = await cancel(job_id);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ ...CANCELLED, attempts: 0 });
    const worker = await forge.worker("c-pending");
    expect(await worker.next()).toBeUndefined();
    expect((await cancel(job_id)).body.error.code).toBe("job_already_finished");
  });

  test("is assigned ends it, and frees the worker for the next job at once", async () => {
    const worker = await forge.worker("c-assigned");
    await worker.next();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilStatus(forge.user, job_id, ["assigned"]);
    expect((await cancel(job_id)).body).toMatchObject({ ...CANCELLED, attempts: 0 });
    const { job_id: next } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    expect(dispatched.job_id).toBe(next);
    await worker.complete(dispatched);
    await untilEnded(forge.user, next);
  });

  test("runs is sent to the worker, which ends it with its usage", async () => {
    const { worker, jobId, job } = await running("c-running", { name: "A100", memory_gb: 80 });
    const answer = await cancel(jobId);
    expect(answer).toMatchObject({ status: 202, body: { status: "running" } });
    expect(answer.body).toMatchObject({ cancel_requested_at: expect.any(String) });
    const command = { type: "cancel_job", job_id: jobId };
    expect((await worker.heartbeat()).commands).toEqual([command]);
    expect(await worker.ask()).toEqual({ job_id: null, commands: [command] });
    const metrics = { rows_processed: 10, gpu_hours: 0.5 };
    expect((await worker.fail(job, { error: "stopped", metrics })).status).toBe(200);
    // The same result is accepted again. A different result is too late.
    expect((await worker.fail(job, { error: "stopped", metrics })).status).toBe(200);
    expect((await worker.complete(job)).status).toBe(409);
    expect(await forge.user.job(jobId)).toMatchObject({ ...CANCELLED, attempts: 1 });
    expect(await forge.user.attempts(jobId)).toMatchObject([
      { outcome: "cancelled", usage: { rows_processed: 10, gpu_hours: 0.5 } },
    ]);
    expect((await workerStatus("c-running")).status).toBe("idle");
    expect((await forge.user.call("GET", `/api/billing/records/${jobId}`)).status).toBe(404);
  });

  test("runs wins over a result that comes after it", async () => {
    const { worker, jobId, job } = await running("c-late", { name: "A100", memory_gb: 80 });
    await cancel(jobId);
    const said = { metrics: {}, result: { rows_processed: 1000 } };
    expect((await worker.complete(job, said)).status).toBe(200);
    expect(await forge.user.job(jobId)).toMatchObject({ ...CANCELLED, result: null });
    const [attempt] = await forge.user.attempts(jobId);
    expect(attempt?.usage).toMatchObject({ rows_processed: 1000 });
    // The worker reported no GPU time, so only the time that Forge measured is known.
    expect(attempt?.usage?.gpu_hours).toBeNull();
    expect(attempt?.gpu_hours_measured).toBeGreaterThan(0);
  });

  test("runs on an unresponsive worker ends it after the grace period; the worker is set to error until it polls", async () => {
    const { worker, jobId } = await running("c-deaf");
    worker.startHeartbeats();
    const asked = performance.now();
    await cancel(jobId);
    expect(await untilEnded(forge.user, jobId)).toMatchObject(CANCELLED);
    expect(performance.now() - asked).toBeLessThan((GRACE_S + 10) * 1000);
    expect(await workerStatus("c-deaf")).toMatchObject({
      status: "error",
      error_code: "unresponsive",
    });
    worker.stopHeartbeats();
    expect(await worker.next()).toBeUndefined();
    expect(await workerStatus("c-deaf")).toMatchObject({ status: "idle", error_code: null });
  });

  test("runs on a dead worker ends it within the grace period, whether or not the death is known", async () => {
    const { jobId } = await running("c-dead");
    await cancel(jobId);
    expect(await untilEnded(forge.user, jobId)).toMatchObject({ ...CANCELLED, attempts: 1 });
    await waitFor(
      "the worker's death",
      async () => (await workerStatus("c-dead")).status === "dead",
    );
  });

  test("waits for another attempt ends it, and no attempt is queued", async () => {
    const { worker, jobId, job } = await running("c-between");
    forge.own("temporal").signal("SIGSTOP");
    await worker.fail(job, { retryable: true });
    expect((await cancel(jobId)).body).toMatchObject({ ...CANCELLED, attempts: 1 });
    forge.own("temporal").signal("SIGCONT");
    await forge.endTest();
    expect(await forge.user.attempts(jobId)).toHaveLength(1);
  });

  test("has an accepted result is refused: job_finalising", async () => {
    const { worker, jobId, job } = await running("c-final");
    forge.own("temporal").signal("SIGSTOP");
    await worker.complete(job);
    const answer = await cancel(jobId);
    expect(answer).toMatchObject({ status: 409, body: { error: { code: "job_finalising" } } });
    forge.own("temporal").signal("SIGCONT");
    expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed" });
    expect((await cancel(jobId)).body.error.code).toBe("job_already_finished");
  });

  test("lost its worker after the cancel ends cancelled, not queued again", async () => {
    const { worker, jobId } = await running("c-restart");
    await cancel(jobId);
    await worker.register(undefined, { boot_id: "another" });
    expect(await forge.user.job(jobId)).toMatchObject({ ...CANCELLED, attempts: 1 });
  });
});

test("twice is the same as once, and of an unknown job is a 404", async () => {
  const { worker, jobId, job } = await running("c-twice");
  expect((await cancel(jobId)).status).toBe(202);
  expect((await cancel(jobId)).status).toBe(202);
  await worker.fail(job);
  await untilEnded(forge.user, jobId);
  expect((await cancel("job_none")).body.error.code).toBe("job_not_found");
});

test("sixty cancels that race with dispatches and results leave every job with one end", async () => {
  const workers = await Promise.all([1, 2, 3, 4].map((n) => forge.worker(`c-race-${n}`)));
  let open = true;
  const working = workers.map(async (worker) => {
    while (open) {
      const dispatched = await worker.next(1);
      if (dispatched) await worker.complete(dispatched);
    }
  });
  const jobs = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const { job_id } = await forge.user.submit("audit", AUDIT);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 300));
      const { status, body } = await cancel(job_id);
      if (status !== 202) expect(body.error.code).toMatch(/^job_(finalising|already_finished)$/);
      return { job_id, cancelled: status === 202 };
    }),
  );
  for (const { job_id, cancelled } of jobs) {
    const job = await untilEnded(forge.user, job_id);
    expect(job).toMatchObject(cancelled ? CANCELLED : { status: "completed" });
  }
  open = false;
  await Promise.all(working);
});

test("a cancel in Temporal's UI is like any other cancel", async () => {
  const { worker, jobId, job } = await running("c-ui");
  const handle = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
  await waitFor("the workflow", async () => (await handle.describe()).status.name === "RUNNING");
  await handle.cancel();
  await waitFor("the command", async () => (await worker.heartbeat()).commands.length === 1);
  await worker.fail(job);
  expect(await untilEnded(forge.user, jobId)).toMatchObject(CANCELLED);
});
