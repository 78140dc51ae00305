/**
 * Failed jobs that their workflow has not billed, in two cases:
 * - The workflow was terminated before it billed the job.
 * - The database lost the job's completion, and the job then ended as failed. The workflow may
 *   still try to complete the job. It then finds the job failed, and must bill it as failed.
 */

import { billJob, requireBillable } from "../../activities/billing/billing";
import { createFinalActivities } from "../../activities/jobs/finish-job";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { untilAwaited, workflowOf } from "../support/job-workflow";
import { backdateStart, untilEnded, untilRetried } from "../support/jobs";
import { asActivity, pausingStore } from "../support/late-activity";
import { saveAttempt } from "../support/saved-attempt";
import { oneFormOf, slowTestAlone, testAlone } from "../support/slow";
import { withoutArtifacts } from "../support/store";
import type { DispatchedJob } from "../support/test-worker";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    {
      // Long enough that the reconciler does nothing: only the delivery of outbox entries repairs
      // workflows.
      FORGE_RECONCILE_AFTER_S: "600",
      FORGE_BILL_OUTCOMES: "cancelled,timeout,failed",
      FORGE_HEARTBEAT_TIMEOUT_S: "600",
    },
    { split: true },
  );
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

const TRAIN = { dataset_id: "ds", model: "m", epochs: 1, max_attempts: 2 };

/** Submits a job that a worker runs, with a workflow that waits for its attempt. */
async function running(workerId: string) {
  const worker = await forge.worker(workerId, { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 });
  const { job_id: id } = await forge.user.submit("train", TRAIN);
  const job = await worker.take();
  expect(job.job_id).toBe(id);
  await backdateStart(forge, job, 2);
  await untilAwaited(forge, id);
  return { worker, job, id };
}

type Running = Awaited<ReturnType<typeof running>>;

const entriesOf = (id: string) => all(forge.ctx.pool, "select from outbox where job_id = $1", [id]);

/**
 * Terminates a workflow before it has billed its failed job, while no Temporal worker runs. Then
 * starts a Temporal worker and waits for the bill.
 */
async function isBilledAfterTermination(id: string): Promise<void> {
  expect(await forge.user.job(id)).toMatchObject({ status: "failed", error_code: "cancelled" });
  await workflowOf(forge, id).terminate("a slip of the mouse");
  await forge.stack.startTemporalWorker();
  await untilBilled(id);
}

async function untilBilled(id: string): Promise<void> {
  const line = "select cost_usd::float8 as usd from billing_lines where job_id = $1";
  const lines = () => all<{ usd: number }>(forge.ctx.pool, line, [id]);
  await waitFor("the bill", async () => (await lines()).length > 0, { timeoutMs: 60_000 });
  const [bill, ...others] = await lines();
  expect(bill?.usd).toBeGreaterThan(0);
  expect(others).toEqual([]);
  await waitFor("its entries to be removed", async () => (await entriesOf(id)).length === 0, {
    timeoutMs: 30_000,
  });
  await forge.proveInvariants();
}

testAlone(
  "a cancelled job is billed, although its workflow was terminated after it had the outcome",
  async () => {
    const { worker, job, id } = await running("gpu-1");
    await forge.stack.temporalWorker?.kill();
    await forge.user.post(`/api/jobs/${id}/cancel`, {});
    await worker.fail(job, { metrics: { gpu_hours: 2 } });
    await waitFor("Temporal to have the outcome", async () => {
      const { raw } = await workflowOf(forge, id).describe();
      return (raw.pendingActivities ?? []).length === 0;
    });
    await isBilledAfterTermination(id);
  },
  120_000,
);

slowTestAlone(
  "so is one that is cancelled between two attempts",
  async () => {
    const { worker, job, id } = await running("gpu-2");
    await forge.stack.temporalWorker?.kill();
    await worker.fail(job, { metrics: { gpu_hours: 2 }, retryable: true });
    await waitFor("the outcome to be delivered", async () => (await entriesOf(id)).length === 0);
    await forge.user.post(`/api/jobs/${id}/cancel`, {});
    await isBilledAfterTermination(id);
  },
  120_000,
);

/**
 * Completes a job while the store is down, so that the final writes are retried. Then undoes the
 * result in the database, so that the attempt runs again.
 *
 * @param before called before the result is undone.
 */
async function withLostResult(
  workerId: string,
  before: (job: DispatchedJob) => Promise<unknown> = async () => undefined,
) {
  const { worker, job, id } = await running(workerId);
  const restore = await saveAttempt(forge, id, worker.id);
  await withoutArtifacts(forge.stack.storeDir, "checkpoints", async () => {
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    await untilRetried(forge, id);
    await before(job);
    await restore();
  });
  return { worker, job, id };
}

slowTestAlone(
  "so is one whose workflow finds it failed when it writes a completion that the database lost",
  async () => {
    let bills: (() => Promise<unknown>) | undefined;
    const { worker, job, id } = await withLostResult("gpu-3", async ({ job_id: jobId }) => {
      await forge.stack.temporalWorker?.kill();
      const input = { jobId, attempt: 1, requestId: "late" };
      const lost = await requireBillable(forge.ctx, input);
      bills = () => billJob(forge.ctx, input, lost);
    });
    await forge.user.post(`/api/jobs/${id}/cancel`, {});
    expect((await worker.fail(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    expect(await forge.user.job(id)).toMatchObject({ status: "failed", error_code: "cancelled" });
    // A process that read the attempt before the database lost its result must not bill the attempt
    // as completed.
    await expect(bills?.()).rejects.toThrow("has no billing record");
    await forge.stack.startTemporalWorker();
    await untilBilled(id);
  },
  120_000,
);

test.each(
  oneFormOf([
    [
      "cancelled",
      async ({ worker, job, id }: Running) => {
        await forge.user.post(`/api/jobs/${id}/cancel`, {});
        await worker.fail(job, { metrics: { gpu_hours: 2 } });
      },
    ],
    [
      "timeout",
      async ({ id }: Running) => {
        await execute(
          forge.ctx.pool,
          "update attempts set deadline_at = now() - interval '1 hour' where job_id = $1",
          [id],
        );
      },
    ],
  ] as const),
)(
  "so is one that ends as %s after its workflow has started over for the loss",
  async (code, end) => {
    const lost = await withLostResult(`gpu-${code}`);
    await untilAwaited(forge, lost.id);
    await end(lost);
    expect(await untilEnded(forge.user, lost.id)).toMatchObject({ error_code: code });
    await untilBilled(lost.id);
  },
  120_000,
);

slowTestAlone(
  "a process that paused while it wrote a bill that the database lost does not overwrite the next one",
  async () => {
    const { ctx } = forge;
    const { worker, job, id } = await running("gpu-4");
    const restore = await saveAttempt(forge, id, worker.id);
    await forge.stack.temporalWorker?.kill();
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    const late = pausingStore(ctx.store);
    const { finishJob } = createFinalActivities({ ...ctx, store: late.store });
    const input = { jobId: id, attempt: 1, requestId: "late" };
    const writing = asActivity("finishJob", () => finishJob(input));
    await late.untilPaused();
    await restore();
    expect((await worker.complete(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    await forge.stack.startTemporalWorker();
    expect((await untilEnded(forge.user, id, 60_000)).status).toBe("completed");
    late.resume();
    expect(await writing).toEqual({ status: "completed" });
    // proveInvariants() also compares the bill's file with the bill's row.
    await forge.proveInvariants();
  },
  120_000,
);
