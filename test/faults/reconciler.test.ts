import { msToTs } from "@temporalio/common/lib/time";
import { JOB_WORKFLOW } from "../../core/jobs/workflow";
import { attemptActivityId, jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import type { Context } from "../../services/context";
import { queueAttempt } from "../../services/jobs/attempts";
import { findComparedJob } from "../../services/jobs/compared-jobs";
import { reconcileWorkflow, startJobWorkflow } from "../../services/jobs/job-workflows";
import { Reconciler } from "../../services/temporal/reconciler";
import { type Forge, startForge } from "../support/forge";
import { untilAwaited, untilDelivered, workflowOf } from "../support/job-workflow";
import { AUDIT, untilEnded, untilRetried } from "../support/jobs";
import { untilServerWaits, withLock } from "../support/locks";
import { saveAttempt } from "../support/saved-attempt";
import { slowTest } from "../support/slow";
import { withoutArtifacts } from "../support/store";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge({ FORGE_RECONCILE_AFTER_S: "1" }, { own: ["server", "temporal"] });
  worker = await forge.worker("w");
  worker.startHeartbeats();
});

afterAll(async () => {
  worker?.stopHeartbeats();
  await forge?.stop();
});

slowTest(
  "of several starts of a job's workflow, one is first and the others change nothing",
  async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await findComparedJob(forge.ctx.pool, job_id);
    if (!job) throw new Error("the job does not exist");
    const start = (): Promise<boolean> => startJobWorkflow(forge.ctx, job, "first");
    const started = await Promise.all([start(), start(), start()]);
    expect(started.filter((isFirst) => isFirst)).toHaveLength(1);
    const { runId } = await workflowOf(forge, job_id).describe();
    // The outbox entries of the job's start and outcome are delivered later. Both deliveries must
    // find this workflow and start no other.
    await worker.complete(await worker.take());
    expect((await untilEnded(forge.user, job_id)).status).toBe("completed");
    await untilDelivered(forge, job_id);
    expect((await workflowOf(forge, job_id).describe()).runId).toBe(runId);
    await forge.proveInvariants();
  },
);

test("a manually terminated workflow is restarted", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  const first = await workflowOf(forge, job_id).describe();
  await workflowOf(forge, job_id).terminate("a slip of the mouse");
  await waitFor("another run", async () => {
    const now = await workflowOf(forge, job_id).describe();
    return now.status.name === "RUNNING" && now.runId !== first.runId;
  });
  await worker.complete(dispatched);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  await forge.proveInvariants();
});

test("a workflow terminated after the result, before Temporal knows of it, is restarted too", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  await workflowOf(forge, job_id).terminate("a slip of the mouse");
  await worker.complete(dispatched);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  await forge.proveInvariants();
});

/**
 * Terminates a job's workflow while the job's last write waits for a lock. The write still succeeds
 * and ends the job. Forge must then start another run of the workflow, which must end with the
 * job's status.
 *
 * @param report sends the result of the attempt.
 * @param untilWrites called after `report`. Waits for a condition of the test, for example until
 *   the last write is retried.
 */
async function isTerminatedWhileItEnds(
  report: (dispatched: DispatchedJob) => Promise<unknown>,
  status: "completed" | "failed",
  untilWrites: (jobId: string) => Promise<unknown>,
): Promise<void> {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  const { runId } = await workflowOf(forge, job_id).describe();
  await withLock(forge, "lock table job_events in share mode", [], async () => {
    await report(dispatched);
    await untilWrites(job_id);
    await untilServerWaits(forge);
    await workflowOf(forge, job_id).terminate("a slip of the mouse");
  });
  expect((await untilEnded(forge.user, job_id)).status).toBe(status);
  await waitFor("another run to end as the job", async () => {
    const now = await workflowOf(forge, job_id).describe();
    return now.runId !== runId && now.status.name === status.toUpperCase();
  });
  await forge.proveInvariants();
}

test("a workflow terminated during the last write of a completed job ends as the job", async () => {
  await isTerminatedWhileItEnds(
    (dispatched) => worker.complete(dispatched),
    "completed",
    async () => undefined,
  );
});

slowTest("so does one of a failed job", async () => {
  await isTerminatedWhileItEnds(
    (dispatched) => worker.fail(dispatched),
    "failed",
    async () => undefined,
  );
});

slowTest("so does one whose last write is retried", async () => {
  await isTerminatedWhileItEnds(
    (dispatched) => worker.complete(dispatched),
    "completed",
    (jobId) => untilRetried(forge, jobId),
  );
});

test("a cancel in the Temporal UI does not lose a job whose result is accepted", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  await withoutArtifacts(forge.stack.storeDir, "datasets", async () => {
    expect((await worker.complete(dispatched)).status).toBe(200);
    // Cancel between the result and the final writes. Before the result, this would be a normal
    // cancel. After the writes, the job would have ended.
    await workflowOf(forge, job_id).cancel();
    const logged = `"job_id":"${job_id}","answer":"finalising","msg":"cancelled through Temporal"`;
    await waitFor("the cancel to be logged", () =>
      forge.servers().some((server) => server.logTail(100).includes(logged)),
    );
  });
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 1 });
  await forge.proveInvariants();
});

slowTest("a workflow that is an attempt behind the database catches up", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  // Move the database one attempt ahead of Temporal, as if Temporal had lost its last writes in a
  // crash.
  await execute(
    forge.ctx.pool,
    `update attempts set state = 'ended', outcome = 'worker_lost', ended_at = now()
     where job_id = $1`,
    [job_id],
  );
  await execute(
    forge.ctx.pool,
    `insert into attempts (job_id, attempt, shape, priority, worker_id, state, assigned_at, started_at)
     select job_id, 2, shape, priority, worker_id, 'running', now(), now()
     from attempts where job_id = $1`,
    [job_id],
  );
  await execute(forge.ctx.pool, "update jobs set attempts = 2 where job_id = $1", [job_id]);
  expect((await worker.complete({ ...dispatched, attempt: 2 })).status).toBe(200);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 2 });
  await forge.proveInvariants();
});

test("a job that ends during the comparison keeps its only workflow run", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  const real = workflowOf(forge, job_id);
  const { runId } = await real.describe();
  // The reconciler calls this after it has read the database. The job ends and its workflow closes
  // before the reconciler gets Temporal's response.
  const describe = async () => {
    await worker.complete(dispatched);
    await waitFor("its end", async () => (await real.describe()).status.name === "COMPLETED");
    return await real.describe();
  };
  const temporal = { workflow: { getHandle: () => ({ describe }) } };
  await reconcileWorkflow({ ...forge.ctx, temporal } as unknown as Context, job_id);
  expect((await real.describe()).runId).toBe(runId);
});

describe("the database comes back without an attempt's end, while its workflow writes the job's", () => {
  test.each([
    {
      outcome: "completed",
      lock: "lock table billing_records in share mode",
      waiting: "insert into billing_records",
      report: (dispatched: DispatchedJob) => worker.complete(dispatched),
    },
    {
      outcome: "failed",
      // With this lock, the process waits before it begins its transaction. If it waited within the
      // transaction, it would keep the rows locked that `restore` changes.
      lock: "lock table billing_lines in access exclusive mode",
      waiting: "has_unbilled_line",
      report: (dispatched: DispatchedJob) => worker.fail(dispatched),
    },
  ])("$outcome: the job continues with its current attempt", async ({ lock, waiting, report }) => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    await untilDelivered(forge, job_id);
    const { runId } = await workflowOf(forge, job_id).describe();
    const restore = await saveAttempt(forge, job_id, worker.id);
    await withLock(forge, lock, [], async () => {
      expect((await report(dispatched)).status).toBe(200);
      await untilServerWaits(forge, waiting);
      await restore();
    });
    await waitFor("another run of its workflow", async () => {
      const now = await workflowOf(forge, job_id).describe();
      return now.status.name === "RUNNING" && now.runId !== runId;
    });
    expect((await forge.user.job(job_id)).status).toBe("running");
    expect((await worker.complete(dispatched)).status).toBe(200);
    expect(await untilEnded(forge.user, job_id)).toMatchObject({
      status: "completed",
      attempts: 1,
    });
    await forge.proveInvariants();
  });

  test("another attempt is queued only after a failed one", async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const { pool } = forge.ctx;
    const dispatched = await worker.take();
    expect(await queueAttempt(pool, job_id, 2, {})).toBe(false);
    await withoutArtifacts(forge.stack.storeDir, "datasets", async () => {
      await worker.complete(dispatched);
      expect(await queueAttempt(pool, job_id, 2, {})).toBe(false);
    });
    expect(await untilEnded(forge.user, job_id)).toMatchObject({ attempts: 1 });
    await forge.proveInvariants();
  });
});

slowTest("an outcome whose outbox entry was lost is still delivered", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await untilDelivered(forge, job_id);
  forge.own("temporal").signal("SIGSTOP");
  await worker.complete(dispatched);
  await execute(forge.ctx.pool, "delete from outbox where job_id = $1", [job_id]);
  await forge.stack.server?.kill();
  await execute(forge.ctx.pool, "delete from outbox where job_id = $1", [job_id]);
  forge.own("temporal").signal("SIGCONT");
  await forge.stack.startServer();
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed" });
  await forge.proveInvariants();
});

/**
 * Temporal's index of workflows is a separate database, so it can be down while workflows still
 * run.
 */
slowTest(
  "while only Temporal's index of workflows is down, one with work to do runs again",
  async () => {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    await untilDelivered(forge, job_id);
    const { runId } = await workflowOf(forge, job_id).describe();
    const list = (): never => {
      throw new Error("the index is down");
    };
    const client = forge.ctx.temporal;
    const workflow = Object.create(client.workflow, { list: { value: list } });
    const temporal = Object.create(client, { workflow: { value: workflow } });
    const ctx = { ...forge.ctx, temporal, config: { ...forge.ctx.config, reconcileAfterS: 0.5 } };
    const reconciler = new Reconciler(ctx);
    await withLock(forge, "lock table job_events in share mode", [], async () => {
      await worker.complete(dispatched);
      await untilServerWaits(forge);
      for (const server of forge.servers()) server.signal("SIGSTOP");
      try {
        await workflowOf(forge, job_id).terminate("a slip of the mouse");
        await execute(forge.ctx.pool, "delete from outbox where job_id = $1", [job_id]);
        reconciler.start();
        await waitFor(
          "another run",
          async () => (await workflowOf(forge, job_id).describe()).runId !== runId,
        );
      } finally {
        for (const server of forge.servers()) server.signal("SIGCONT");
        await reconciler.stop();
      }
    });
    expect((await untilEnded(forge.user, job_id)).status).toBe("completed");
    await forge.proveInvariants();
  },
  60_000,
);

slowTest(
  "a workflow that gets no outcome reads that its job has ended, and ends the same way",
  async () => {
    worker.stopHeartbeats();
    const { job_id } = await forge.user.submit("audit", AUDIT);
    await untilAwaited(forge, job_id);
    const { runId } = await workflowOf(forge, job_id).describe();
    // End the job while Temporal is down. Delete its outbox entry while the server is also down, so
    // that no process tells the workflow of the job's end.
    await forge.own("temporal").kill();
    await forge.user.post(`/api/jobs/${job_id}/cancel`, {});
    await forge.stack.server?.kill();
    await execute(forge.ctx.pool, "delete from outbox where job_id = $1", [job_id]);
    await forge.stack.startTemporal();
    await forge.stack.startServer();
    await waitFor("its workflow to end", async () => {
      const now = await workflowOf(forge, job_id).describe();
      return now.status.name === "FAILED" && now.runId === runId;
    });
    worker.startHeartbeats();
    await forge.proveInvariants();
  },
);

test("a late caller with an earlier attempt does not disturb a workflow that waits for a later one", async () => {
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
  await worker.fail(await worker.take(), { retryable: true });
  const again = await worker.take();
  await untilDelivered(forge, job_id);
  const { runId } = await workflowOf(forge, job_id).describe();
  await reconcileWorkflow(forge.ctx, job_id);
  expect(await workflowOf(forge, job_id).describe()).toMatchObject({
    runId,
    status: { name: "RUNNING" },
  });
  await worker.complete(again);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({ status: "completed", attempts: 2 });
  await forge.proveInvariants();
});

slowTest("a workflow whose job is missing in a restored database ends", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await untilAwaited(forge, job_id);
  await untilDelivered(forge, job_id);
  for (const table of ["job_events", "attempts", "jobs"]) {
    await execute(forge.ctx.pool, `delete from ${table} where job_id = $1`, [job_id]);
  }
  await waitFor("its workflow to end", async () => {
    return (await workflowOf(forge, job_id).describe()).status.name === "TERMINATED";
  });
  await forge.proveInvariants();
});

test("a workflow that starts for a job missing in a restored database ends", async () => {
  const known = await forge.user.submit("audit", AUDIT);
  const job = await findComparedJob(forge.ctx.pool, known.job_id);
  if (!job) throw new Error("the job does not exist");
  const unknown = { ...job, job_id: "job_before_the_restore" };
  await startJobWorkflow(forge.ctx, unknown, "first");
  // Either the workflow fails by itself, or a reconciler terminates it first.
  await waitFor("its workflow to end", async () => {
    const { status } = await workflowOf(forge, unknown.job_id).describe();
    return ["FAILED", "TERMINATED"].includes(status.name);
  });
  await worker.complete(await worker.take());
  await untilEnded(forge.user, known.job_id);
  await forge.proveInvariants();
});

/** A value of Temporal's CommandType. */
const SCHEDULE_ACTIVITY_TASK = 1;

/**
 * Starts a workflow of another Forge, and acts as its Temporal worker until the workflow waits for
 * the job's attempt.
 */
async function startElsewhere(jobId: string, queue: string): Promise<void> {
  const { workflow, workflowService, options } = forge.ctx.temporal;
  const { namespace } = options;
  const taskQueue = { name: queue };
  await workflow.start(JOB_WORKFLOW, { workflowId: jobWorkflowId(jobId), taskQueue: queue });
  const { taskToken } = await forge.ctx.temporal.withDeadline(Date.now() + 20_000, () =>
    workflowService.pollWorkflowTaskQueue({ namespace, taskQueue }),
  );
  await workflowService.respondWorkflowTaskCompleted({
    namespace,
    taskToken,
    commands: [
      {
        commandType: SCHEDULE_ACTIVITY_TASK,
        scheduleActivityTaskCommandAttributes: {
          activityId: attemptActivityId(1),
          activityType: { name: "awaitAttempt" },
          taskQueue,
          startToCloseTimeout: msToTs("1h"),
          scheduleToCloseTimeout: msToTs("1h"),
        },
      },
    ],
  });
}

test("workflows of another Forge in the same namespace are left alone", async () => {
  const foreign = "job_of_another_forge";
  await startElsewhere(foreign, "another-forge");
  // Terminate two workflows of this Forge, one after the other, and wait until the reconciler has
  // started each again. By then, it has also seen the foreign workflow.
  for (let look = 0; look < 2; look++) {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const dispatched = await worker.take();
    await untilDelivered(forge, job_id);
    const { runId } = await workflowOf(forge, job_id).describe();
    await workflowOf(forge, job_id).terminate("a slip of the mouse");
    await waitFor("another run", async () => {
      const now = await workflowOf(forge, job_id).describe();
      return now.status.name === "RUNNING" && now.runId !== runId;
    });
    await worker.complete(dispatched);
    await untilEnded(forge.user, job_id);
  }
  expect((await workflowOf(forge, foreign).describe()).status.name).toBe("RUNNING");
  await workflowOf(forge, foreign).terminate("the test is over");
});
