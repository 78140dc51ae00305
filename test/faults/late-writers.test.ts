/**
 * Processes that pause during a job's last writes, and continue after the database lost some of
 * these writes.
 */

import { billJob, requireBillable } from "../../activities/billing/billing";
import { createAttemptActivities } from "../../activities/jobs/attempts";
import { createFinalActivities } from "../../activities/jobs/finish-job";
import { artifactPrefix, billingRecordKey, MANIFEST_FILE } from "../../core/artifacts/artifacts";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { checkRecordFile, syncRecordFile } from "../../services/billing/record-file";
import { findJob } from "../../services/jobs/jobs";
import { hasSameEnd, markSwept } from "../../services/jobs/orphaned-files";
import { until } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilAwaited, workflowOf } from "../support/job-workflow";
import { backdateStart, untilEnded } from "../support/jobs";
import { asActivity, pausingPool, pausingStatement, pausingStore } from "../support/late-activity";
import { saveAttempt } from "../support/saved-attempt";
import { slowTestAlone, testAlone } from "../support/slow";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_RECONCILE_AFTER_S: "2",
      FORGE_HEARTBEAT_TIMEOUT_S: "600",
      FORGE_SWEEP_AFTER_S: "1",
      FORGE_SWEEP_INTERVAL_S: "1",
    },
    { split: true },
  );
}, 120_000);

afterAll(async () => {
  await forge?.stop();
});

const TRAIN = { dataset_id: "ds", model: "m", epochs: 1, max_attempts: 2 };

/**
 * A running job whose workflow waits for its attempt. The Temporal worker is killed, so no process
 * works for the job until the test starts a Temporal worker again.
 */
async function running(workerId: string) {
  const worker = await forge.worker(workerId, { name: "NVIDIA A100-SXM4-80GB", memory_gb: 80 });
  const { job_id: id } = await forge.user.submit("train", TRAIN);
  const job = await worker.take();
  expect(job.job_id).toBe(id);
  await backdateStart(forge, job, 3);
  await untilAwaited(forge, id);
  const restore = await saveAttempt(forge, id, worker.id);
  await forge.stack.temporalWorker?.kill();
  const input = { jobId: id, attempt: 1, requestId: "late" };
  return { worker, job, id, restore, input };
}

/** A process that pauses when it has written the bill, before it writes the files. */
function lateFinish(input: { jobId: string; attempt: number; requestId: string }) {
  const late = pausingStore(forge.ctx.store);
  const { finishJob } = createFinalActivities({ ...forge.ctx, store: late.store });
  const writing = asActivity("finishJob", () => finishJob(input)).catch(String);
  return { ...late, writing };
}

const manifestOf = async (id: string): Promise<string | undefined> => {
  const query = "select manifest::text as text from artifacts where job_id = $1";
  return (await all<{ text: string }>(forge.ctx.pool, query, [id]))[0]?.text;
};

testAlone(
  "a job is not completed without the bill that the database lost",
  async () => {
    const { worker, job, id, input } = await running("gpu-1");
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    const late = lateFinish(input);
    await late.untilPaused();
    // Undo the last commit, as if the database had lost it.
    await execute(forge.ctx.pool, "delete from billing_records where job_id = $1", [id]);
    await execute(forge.ctx.pool, "update artifacts set measured = null where job_id = $1", [id]);
    late.resume();
    await late.writing;
    await forge.stack.startTemporalWorker();
    await untilEnded(forge.user, id, 60_000);
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "a job is not completed with the manifest of a bill that the database lost",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-2");
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    const late = lateFinish(input);
    await late.untilPaused();
    await restore();
    expect((await worker.complete(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    const next = lateFinish(input);
    await next.untilPaused();
    late.resume();
    await late.writing;
    next.resume();
    await next.writing;
    await forge.stack.startTemporalWorker();
    await untilEnded(forge.user, id, 60_000);
    const bill = await forge.user.get<{ metrics: { gpu_hours: number } }>(
      `/api/billing/records/${id}`,
    );
    expect(bill.metrics.gpu_hours).toBe(1);
    expect(await manifestOf(id)).toContain('"gpu_hours": 1');
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "a bill is not made from an outcome that the database lost",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-3");
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    const lost = await requireBillable(forge.ctx, input);
    await restore();
    expect((await worker.complete(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    await billJob(forge.ctx, input, lost).catch(String);
    await forge.stack.startTemporalWorker();
    await untilEnded(forge.user, id, 60_000);
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "a failed job's outbox entry stays until the job is billed",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-4");
    await worker.fail(job, { metrics: { gpu_hours: 2 } });
    await restore();
    const late = pausingPool(forge.ctx.pool);
    const { failJob } = createAttemptActivities({ ...forge.ctx, pool: late.pool });
    const failing = asActivity("failJob", () => failJob({ ...input, code: "job_error" })).catch(
      String,
    );
    await late.untilPaused();
    await forge.user.post(`/api/jobs/${id}/cancel`, {});
    await worker.fail(job, { metrics: { gpu_hours: 1 } });
    late.resume();
    await failing;
    const recorded = await all(
      forge.ctx.pool,
      "select job_id from outbox where job_id = $1 union all select job_id from billing_lines where job_id = $1",
      [id],
    );
    await forge.stack.startTemporalWorker();
    expect(recorded).not.toEqual([]);
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "the file of a bill that the database lost goes when the job ends unbilled",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-5");
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    const late = lateFinish(input);
    await late.untilPaused();
    await restore();
    late.resume();
    await late.writing;
    // The job's workflow starts over, because the database lost the end of the attempt. Its new run
    // waits for the attempt.
    await forge.stack.startTemporalWorker();
    await untilAwaited(forge, id);
    await forge.user.post(`/api/jobs/${id}/cancel`, {});
    await worker.fail(job, { metrics: { gpu_hours: 1 } });
    await untilEnded(forge.user, id, 60_000);
    await forge.proveInvariants();
    const key = billingRecordKey("local", id);
    const isGone = async () => (await forge.ctx.store.sizeOf(key)) === undefined;
    await waitFor("the file to be removed", isGone);
  },
  120_000,
);

/** Simulates a process that wrote old content to the files, and ended before it corrected them. */
slowTestAlone(
  "old files are written again from their rows",
  async () => {
    const { worker, job, id } = await running("gpu-6");
    await forge.stack.startTemporalWorker();
    expect((await worker.complete(job, { metrics: { gpu_hours: 2 } })).status).toBe(200);
    await untilEnded(forge.user, id, 60_000);
    const { ctx } = forge;
    await ctx.store.put(billingRecordKey("local", id), Buffer.from('{"total_cost_usd": 99}\n'));
    const { checkpoint_id: folder = "" } = job.output_ids;
    const manifest = `${artifactPrefix("train", folder)}${MANIFEST_FILE}`;
    await ctx.store.put(manifest, Buffer.from("{}\n"));
    await execute(ctx.pool, "update jobs set swept_at = null where job_id = $1", [id]);
    const isSwept = async () =>
      (await all(ctx.pool, "select from jobs where job_id = $1 and swept_at > completed_at", [id]))
        .length > 0;
    await waitFor("the job's files to be checked", isSwept);
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "a workflow that knows an outcome which the database lost does not fail a completed job",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-7");
    // `worker.fail` and `restore` simulate this case: an attempt ends as `worker_lost`, the
    // database loses this end, and the worker then delivers a result.
    await worker.fail(job, { metrics: { gpu_hours: 2 } });
    await restore();
    expect((await worker.complete(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    const { failJob } = createAttemptActivities(forge.ctx);
    await asActivity("failJob", () => failJob({ ...input, code: "worker_lost" })).catch(String);
    await forge.stack.startTemporalWorker();
    expect((await untilEnded(forge.user, id, 60_000)).status).toBe("completed");
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "nor does it record the usage of a job that goes on",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-8");
    await worker.fail(job, { metrics: { gpu_hours: 2 } });
    await restore();
    await worker.fail(job, { metrics: { gpu_hours: 1 }, retryable: true });
    const { failJob } = createAttemptActivities(forge.ctx);
    await asActivity("failJob", () => failJob({ ...input, code: "job_error" })).catch(String);
    await forge.stack.startTemporalWorker();
    const second = await worker.take();
    expect(second).toMatchObject({ job_id: id, attempt: 2 });
    expect((await worker.complete(second, { metrics: { gpu_hours: 0 } })).status).toBe(200);
    expect((await untilEnded(forge.user, id, 60_000)).status).toBe("completed");
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "nor does it wait forever to finish a placement whose completion the database lost",
  async () => {
    const { user, stack } = forge;
    const first = await forge.worker("serves-1");
    const { job_id: deployId } = await user.submit("deploy", { checkpoint_id: "ckpt" });
    const served = { result: { inference_url: "http://127.0.0.1:9/v1" } };
    await first.complete(await first.take(), served);
    const { result } = await untilEnded(user, deployId);
    const deploymentId = String(result?.deployment_id);
    const second = await forge.worker("serves-2");
    expect((await user.call("DELETE", "/api/workers/serves-1")).status).toBe(200);
    const job = await second.take();
    const { job_id: id } = job;
    await untilAwaited(forge, id);
    const restore = await saveAttempt(forge, id, second.id);
    await stack.temporalWorker?.kill();
    await second.complete(job, served);
    const handle = workflowOf(forge, id);
    await waitFor("Temporal to have the outcome", async () => {
      return ((await handle.describe()).raw.pendingActivities ?? []).length === 0;
    });
    await restore();
    // The worker registers again, which ends its attempt as lost.
    await second.register();
    await stack.startTemporalWorker();
    const again = await second.take(40);
    expect(again).toMatchObject({ job_id: id, attempt: 2 });
    await second.complete(again, served);
    expect((await untilEnded(user, id, 60_000)).status).toBe("completed");
    await user.post(`/api/deployments/${deploymentId}/stop`, {});
    expect((await user.call("DELETE", "/api/workers/serves-2")).status).toBe(200);
    await until(user, deploymentId, "stopped", ({ status }) => status === "stopped", 60_000);
    await forge.proveInvariants();
    // The store loses files of the stopped deployment. Like an operator, reset `swept_at` to have
    // them written again.
    const { pool, store } = forge.ctx;
    const manifest = `${artifactPrefix("deploy", deploymentId)}${MANIFEST_FILE}`;
    const files = [manifest, billingRecordKey("local", deployId)];
    for (const file of files) await store.remove(file);
    await execute(pool, "update jobs set swept_at = null where job_id = $1", [deployId]);
    await waitFor("the files to be written again", async () => {
      const sizes = await Promise.all(files.map((file) => store.sizeOf(file)));
      return sizes.every((size) => size !== undefined);
    });
    await forge.proveInvariants();
  },
  180_000,
);

slowTestAlone(
  "nor does it repeat a job whose worker has reported a final failure since",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-9");
    await worker.fail(job, { metrics: { gpu_hours: 2 }, retryable: true });
    await restore();
    await worker.fail(job, { metrics: { gpu_hours: 1 } });
    const { queueAttempt } = createAttemptActivities(forge.ctx);
    const second = { ...input, attempt: 2 };
    await asActivity("queueAttempt", () => queueAttempt(second)).catch(String);
    await forge.stack.startTemporalWorker();
    expect(await untilEnded(forge.user, id, 60_000)).toMatchObject({ attempts: 1 });
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "a job is not repeated after a final failure by a process that has read a retryable one",
  async () => {
    const { worker, job, id, input, restore } = await running("gpu-8");
    await worker.fail(job, { metrics: { gpu_hours: 2 }, retryable: true });
    await restore();
    const late = pausingStatement(forge.ctx.pool, "insert into attempts");
    const { queueAttempt } = createAttemptActivities({ ...forge.ctx, pool: late.pool });
    const queueing = asActivity("queueAttempt", () => queueAttempt({ ...input, attempt: 2 }));
    await late.untilPaused();
    expect((await worker.fail(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    late.resume();
    await queueing.catch(String);
    await forge.stack.startTemporalWorker();
    expect(await untilEnded(forge.user, id, 60_000)).toMatchObject({ error_code: "job_error" });
    expect(await all(forge.ctx.pool, "select from attempts where job_id = $1", [id])).toHaveLength(
      1,
    );
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "the file of a bill that is written while the sweeper removes an older one stays",
  async () => {
    const { worker, job, id } = await running("gpu-9");
    await worker.complete(job);
    await forge.stack.startTemporalWorker();
    await untilEnded(forge.user, id, 60_000);
    const { pool, store } = forge.ctx;
    const ended = await findJob(pool, id, null);
    if (!ended) throw new Error("the job is gone");
    const isSwept = "select from jobs where job_id = $1 and swept_at is not null";
    await waitFor("the server to have swept it", async () => {
      return (await all(pool, isSwept, [id])).length > 0;
    });
    const restore = await withoutBill(id);
    const late = pausingStore(store, "remove");
    const sweeping = checkRecordFile({ pool, store: late.store }, ended);
    await late.untilPaused();
    await restore();
    await syncRecordFile(forge.ctx, ended);
    late.resume();
    await sweeping;
    expect(await store.sizeOf(billingRecordKey(ended.user_id, id))).toBeDefined();
    await forge.proveInvariants();
  },
  120_000,
);

slowTestAlone(
  "a sweeper that paused does not sweep a job that runs again, because the database lost its end",
  async () => {
    const { worker, job, id, input } = await running("gpu-10");
    const { pool, store } = forge.ctx;
    expect((await worker.complete(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    // Simulates a sweeper that paused after it had read the end of the job. Meanwhile, the database
    // has lost this end. `old` stands for what the sweeper read.
    const old = { job_id: id, ended_at: "2026-01-01 00:00:00+00" };
    expect(await hasSameEnd(pool, old)).toBe(false);
    await markSwept(pool, old);
    const { finishJob } = createFinalActivities(forge.ctx);
    const finished = await asActivity("finishJob", () => finishJob(input));
    expect(finished).toEqual({ status: "completed" });
    await forge.stack.startTemporalWorker();
    await untilEnded(forge.user, id, 60_000);
    await forge.proveInvariants();
    expect(await store.sizeOf(billingRecordKey("local", id))).toBeDefined();
  },
  120_000,
);

slowTestAlone(
  "a job whose artifact's row is missing does not start over without end, but shows as stuck",
  async () => {
    const { worker, job, id, input } = await running("gpu-11");
    const { pool } = forge.ctx;
    expect((await worker.complete(job, { metrics: { gpu_hours: 1 } })).status).toBe(200);
    const { checkpoint_id: row } = job.output_ids;
    await execute(pool, "update artifacts set job_id = null where artifact_id = $1", [row]);
    const { finishJob } = createFinalActivities(forge.ctx);
    const finishing = asActivity("finishJob", () => finishJob(input));
    await expect(finishing).rejects.toThrow(/the row of the artifact of .* is missing/);
    await execute(pool, "update artifacts set job_id = $2 where artifact_id = $1", [row, id]);
    await forge.stack.startTemporalWorker();
    expect((await untilEnded(forge.user, id, 60_000)).status).toBe("completed");
    await forge.proveInvariants();
  },
  120_000,
);

/** Removes a job's bill. @returns a function that writes it again. */
async function withoutBill(id: string): Promise<() => Promise<void>> {
  const { pool } = forge.ctx;
  await execute(pool, "create table removed_bill as select * from billing_records");
  const alone = async (statement: string): Promise<void> => {
    await transaction(pool, async (db) => {
      // Disables triggers and foreign keys.
      await execute(db, "set local session_replication_role = replica");
      await execute(db, statement, [id]);
    });
  };
  await alone("delete from billing_records where job_id = $1");
  return () => alone("insert into billing_records select * from removed_bill where job_id = $1");
}
