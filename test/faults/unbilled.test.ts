import { attemptActivityId, jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { backdateStart } from "../support/jobs";

/** A job that is `failed` at once, and whose workflow is terminated before it bills. */
let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_RECONCILE_AFTER_S: "1",
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

const workflowOf = (jobId: string) => forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));

/** Submits a job that a worker runs, with a workflow that waits for its attempt. */
async function running(workerId: string) {
  const worker = await forge.worker(workerId, { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 });
  const { job_id: id } = await forge.user.submit("train", TRAIN);
  const job = await worker.take();
  expect(job.job_id).toBe(id);
  await backdateStart(forge, job, 2);
  await waitFor("the workflow to wait", async () => {
    const { raw } = await workflowOf(id).describe();
    const waiting = raw.pendingActivities?.find(
      ({ activityId }) => activityId === attemptActivityId(1),
    );
    return waiting?.state === PENDING_STARTED;
  });
  return { worker, job, id };
}

/** With a second Temporal worker, which goes on, the workflow would bill before it is terminated. */
const testAlone = process.env.TEST_DOUBLED ? test.skip : test;

/** Temporal's PENDING_ACTIVITY_STATE_STARTED. */
const PENDING_STARTED = 2;

const entriesOf = (id: string) => all(forge.ctx.pool, "select from outbox where job_id = $1", [id]);

/** Terminates the workflow, which has not billed because no process works for Temporal, and waits for the bill. */
async function isBilledAfterTermination(id: string): Promise<void> {
  expect(await forge.user.job(id)).toMatchObject({ status: "failed", error_code: "cancelled" });
  await workflowOf(id).terminate("a slip of the mouse");
  await forge.stack.startTemporalWorker();
  const line = "select cost_usd::float8 as usd from billing_lines where job_id = $1";
  const lines = () => all<{ usd: number }>(forge.ctx.pool, line, [id]);
  await waitFor("the bill", async () => (await lines()).length > 0, { timeoutMs: 60_000 });
  expect((await lines())[0]?.usd).toBeGreaterThan(0);
  await waitFor("its entries to be removed", async () => (await entriesOf(id)).length === 0);
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
      const { raw } = await workflowOf(id).describe();
      return (raw.pendingActivities ?? []).length === 0;
    });
    await isBilledAfterTermination(id);
  },
  120_000,
);

testAlone(
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
