/** Postgres was restored to an earlier state, and Temporal was not. */

import { createStepActivities } from "../../activities/pipelines/pipeline-steps";
import { createPipelineActivities } from "../../activities/pipelines/pipelines";
import { deploymentWorkflowId, jobWorkflowId, pipelineWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { closeRun } from "../../services/pipelines/pipelines";
import { readWorkflow } from "../../services/temporal/workflow-state";
import { backUp } from "../support/backup";
import { deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import {
  OVER,
  type Pipeline,
  readPipeline,
  startPipeline,
  statusesOf,
  stepOf,
  URI,
  untilPipeline,
} from "../support/pipelines";
import { refuse } from "../support/refusals";
import { oneFormOf, slowTest } from "../support/slow";
import type { DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;
let workers = 0;

beforeAll(async () => {
  forge = await startForge({ FORGE_RECONCILE_AFTER_S: "1" }, { own: ["server"] });
});

beforeEach(async () => {
  workers += 1;
  worker = await forge.worker(`w-${workers}`);
  worker.startHeartbeats();
});

afterEach(async () => {
  worker.stopHeartbeats();
  await forge.proveInvariants();
  await execute(forge.ctx.pool, "update workers set available_until = null");
});

afterAll(async () => {
  await forge?.stop();
});

const A = { name: "a", job_type: "audit", payload: { dataset_uri: URI } };
const B = { ...A, name: "b", needs: ["a"] };

const statusOf = async (workflowId: string): Promise<string> =>
  (await forge.ctx.temporal.workflow.getHandle(workflowId).describe()).status.name;

/** Waits until the job's workflow waits for its attempt. */
const untilItWaits = (jobId: string): Promise<unknown> =>
  waitFor("its workflow to wait", async () => {
    const { raw } = await forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId)).describe();
    return (raw.pendingActivities?.length ?? 0) > 0;
  });

/**
 * Ends step `a`, and then restores the database to its state before that end. The workflow already
 * runs step `b`, but in the database step `a` has not ended.
 *
 * @returns the job of step `a`, which is dispatched again.
 */
async function loseTheEndOfA(id: string) {
  const first = await worker.take();
  const restore = await backUp(forge.stack.databaseUrl);
  await worker.complete(first);
  await untilItWaits((await worker.take()).job_id);
  await forge.withoutServers(restore);
  await worker.heartbeat();
  const again = await worker.take();
  expect([again.job_id, statusesOf(await forge.user.get(`/api/pipelines/${id}`))]).toEqual([
    first.job_id,
    { a: "running", b: "pending" },
  ]);
  return again;
}

test("a pipeline whose workflow is a step ahead of the database continues", async () => {
  const id = await startPipeline(forge.user, { steps: [A, B] });
  await worker.complete(await loseTheEndOfA(id));
  await worker.complete(await worker.take(60));
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
}, 180_000);

slowTest(
  "a pipeline that is cancelled after that ends",
  async () => {
    const id = await startPipeline(forge.user, { steps: [A, B] });
    const again = await loseTheEndOfA(id);
    await forge.user.post(`/api/pipelines/${id}/cancel`, {});
    await worker.fail(again);
    expect((await untilPipeline(forge.user, id)).status).toBe("cancelled");
  },
  180_000,
);

slowTest(
  "a pipeline that waited for an approval unknown to the database asks again",
  async () => {
    const id = await startPipeline(forge.user, { steps: [A, B], approvals: ["b"] });
    const first = await worker.take();
    const restore = await backUp(forge.stack.databaseUrl);
    await worker.complete(first);
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    await forge.withoutServers(restore);
    await worker.heartbeat();
    await worker.complete(await worker.take());
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    await forge.user.post(`/api/pipelines/${id}/approve`, {});
    await worker.complete(await worker.take());
    expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  },
  180_000,
);

test("a pipeline with a ready step continues although its workflow waits for something else", async () => {
  const id = await startPipeline(forge.user, { steps: [A, B], approvals: ["b"] });
  await worker.complete(await worker.take());
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  // Set the rows back to before the request for approval.
  await execute(
    forge.ctx.pool,
    `with step as (update pipeline_steps set status = 'pending'
                   where pipeline_id = $1 and name = 'b' returning pipeline_id)
     update pipelines p set status = 'running' from step where p.pipeline_id = step.pipeline_id`,
    [id],
  );
  const { beginStep } = createStepActivities(forge.ctx);
  const b = { pipelineId: id, requestId: "r", step: "b", run: 1 };
  await expect(beginStep(b)).rejects.toMatchObject({ type: "gone" });
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  await forge.user.post(`/api/pipelines/${id}/approve`, {});
  await worker.complete(await worker.take());
  const over = await untilPipeline(forge.user, id);
  expect(stepOf(over, "b").status).toBe("completed");
}, 120_000);

test("no step begins, asks for approval or ends before the database has reached it", async () => {
  const id = await startPipeline(forge.user, { steps: [A, B] });
  const dispatched = await worker.take();
  const b = { pipelineId: id, requestId: "r", step: "b", run: 1 };
  const { beginStep, endStep } = createStepActivities(forge.ctx);
  const { askApproval } = createPipelineActivities(forge.ctx);
  for (const ahead of [beginStep, askApproval, endStep]) {
    await expect(ahead(b)).rejects.toMatchObject({ type: "gone", nonRetryable: true });
  }
  await worker.complete(dispatched);
  await worker.complete(await worker.take());
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
}, 60_000);

/** Waits until the pipeline's workflow has read all changes of its rows. */
const untilItHasRead = (id: string): Promise<unknown> =>
  waitFor("its workflow to read the rows", async () => {
    const found = "select from pipelines where pipeline_id = $1 and told = asked";
    const isDelivered = (await all(forge.ctx.pool, found, [id])).length === 1;
    return isDelivered && !(await readWorkflow(forge.ctx, pipelineWorkflowId(id))).hasTask;
  });

const untilStep = (id: string, name: string, status: string): Promise<unknown> =>
  waitFor(`step ${name} to be ${status}`, async () => {
    return stepOf(await readPipeline(forge.user, id), name).status === status;
  });

const PASSES = { result: { quality: { clarity_mean: 0.9 } } };

/** Approves and completes the remaining steps of a pipeline. @returns the ended pipeline. */
async function carryOut(id: string): Promise<Pipeline> {
  for (;;) {
    const pipeline = await readPipeline(forge.user, id);
    if (OVER.includes(pipeline.status)) return pipeline;
    if (pipeline.status === "waiting_approval") {
      await forge.user.post(`/api/pipelines/${id}/approve`, {});
    }
    const job = await worker.next(1);
    if (job) await worker.complete(job, PASSES);
  }
}

const SIDE_BY_SIDE = [A, { ...A, name: "b" }];
const C = { ...A, name: "c", needs: ["a", "b"] };

interface Running {
  by: TestWorker;
  job: DispatchedJob;
}

/** Takes the jobs of steps a and b, each with a worker of its own. */
async function takeSideBySide(id: string): Promise<{ a: Running; b: Running }> {
  const second = await forge.worker(`second-${workers}`);
  const some = { by: worker, job: await worker.take() };
  const other = { by: second, job: await second.take() };
  const a = stepOf(await readPipeline(forge.user, id), "a");
  return a.job_id === some.job.job_id ? { a: some, b: other } : { a: other, b: some };
}

const cancel = (id: string) => forge.user.post(`/api/pipelines/${id}/cancel`, {});

/** Ways to stop a run in which step `a` runs, and step `b` runs or waits for an approval. */
const STOPS: Record<string, [object, (id: string, b: Running | undefined) => Promise<unknown>]> = {
  "a cancel": [{}, cancel],
  "a cancel that ended the wait for an approval": [{ approvals: ["b"] }, cancel],
  "a rejection": [
    { approvals: ["b"] },
    (id) => forge.user.post(`/api/pipelines/${id}/approve`, { approved: false }),
  ],
  "a job's failure": [{}, async (_id, b) => b?.by.fail(b.job)],
  "a gate's verdict": [
    { gates: [{ step: "b", condition: "quality.clarity_mean > 0.5" }] },
    async (_id, b) => b?.by.complete(b.job, { result: { quality: { clarity_mean: 0.1 } } }),
  ],
  "a budget that stopped a step": [
    { steps: [...SIDE_BY_SIDE, C, { ...A, name: "d", needs: ["b"] }], budget_usd: 9 },
    async (id, b) => {
      await forge.user.call("PUT", `/api/pipelines/${id}/budget`, { budget_usd: 0 });
      await b?.by.complete(b.job);
      await untilStep(id, "d", "failed");
    },
  ],
};

test.each(oneFormOf(Object.entries(STOPS)))(
  "a run continues if its workflow has read %s that the database lost",
  async (_what, [more, stop]) => {
    const id = await startPipeline(forge.user, { steps: [...SIDE_BY_SIDE, C], ...more });
    const waits = "approvals" in more;
    if (waits) await untilPipeline(forge.user, id, ["waiting_approval"]);
    const a = waits ? { by: worker, job: await worker.take() } : undefined;
    const both = a ? { a, b: undefined } : await takeSideBySide(id);
    const restore = await backUp(forge.stack.databaseUrl);
    await stop(id, both.b);
    await untilItHasRead(id);
    await forge.withoutServers(restore);
    await both.a.by.complete(both.a.job);
    await untilStep(id, "a", "completed");
    await both.b?.by.complete(both.b.job, PASSES);
    expect(await carryOut(id)).toMatchObject({ status: "completed", run: 1 });
  },
  120_000,
);

slowTest(
  "a step is not begun by an approval that the database lost, and its pipeline can be cancelled",
  async () => {
    const id = await startPipeline(forge.user, { steps: [A], approvals: ["a"] });
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    const restore = await backUp(forge.stack.databaseUrl);
    // Let the workflow read the approval, but keep it from beginning the step.
    const allow = await refuse(forge, "before update on pipeline_steps", "new.status = 'running'");
    await forge.user.post(`/api/pipelines/${id}/approve`, {});
    await waitFor("the step's beginning to fail", async () => {
      const { activities } = await readWorkflow(forge.ctx, pipelineWorkflowId(id));
      return activities.some(({ type, failure }) => type === "beginStep" && failure);
    });
    await forge.withoutServers(async () => {
      await restore();
      await allow();
    });
    expect(await worker.next(3)).toBeUndefined();
    await forge.user.post(`/api/pipelines/${id}/cancel`, {});
    expect((await untilPipeline(forge.user, id)).status).toBe("cancelled");
  },
  120_000,
);

slowTest(
  "a step whose job began by an approval that the database lost asks again",
  async () => {
    const id = await startPipeline(forge.user, { steps: [A], approvals: ["a"] });
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    const restore = await backUp(forge.stack.databaseUrl);
    await forge.user.post(`/api/pipelines/${id}/approve`, {});
    const lost = await worker.take();
    await untilItWaits(lost.job_id);
    await forge.withoutServers(restore);
    await worker.heartbeat();
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    await forge.user.post(`/api/pipelines/${id}/approve`, {});
    const again = await worker.take();
    expect(again.job_id).not.toBe(lost.job_id);
    await worker.complete(again);
    expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  },
  120_000,
);

slowTest(
  "a pipeline whose resume the database lost ends as before, and can be resumed otherwise",
  async () => {
    const id = await startPipeline(forge.user, { steps: [A, B] });
    await worker.complete(await worker.take());
    await worker.fail(await worker.take());
    await untilPipeline(forge.user, id);
    await waitFor("its end", async () => (await statusOf(pipelineWorkflowId(id))) === "FAILED");
    const restore = await backUp(forge.stack.databaseUrl);
    await forge.user.post(`/api/pipelines/${id}/resume`, {});
    const lost = await worker.take();
    await untilItWaits(lost.job_id);
    await forge.withoutServers(restore);
    await worker.heartbeat();
    expect(await readPipeline(forge.user, id)).toMatchObject({ status: "failed", run: 1 });
    // Resume while the workflow of the lost run may still be open. The workflow can't tell the two
    // runs apart by their numbers, because both are run 2.
    await forge.user.post(`/api/pipelines/${id}/resume`, { from: "a" });
    expect(await carryOut(id)).toMatchObject({ status: "completed", run: 2 });
  },
  120_000,
);

test.each(
  oneFormOf([
    ["failed", async (a: Running) => a.by.fail(a.job)],
    [
      "cancelled",
      async (a: Running, id: string) => {
        await cancel(id);
        await a.by.fail(a.job);
      },
    ],
  ] as const),
)(
  "a restarted workflow waits for the running step of a run that has %s",
  async (end, stop) => {
    const id = await startPipeline(forge.user, { steps: [...SIDE_BY_SIDE, C] });
    const { a, b } = await takeSideBySide(id);
    await stop(a, id);
    await untilStep(id, "a", end);
    const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
    const { runId } = await handle.describe();
    await handle.terminate("by hand");
    await waitFor("another execution", async () => (await handle.describe()).runId !== runId);
    await untilItHasRead(id);
    expect(statusesOf(await readPipeline(forge.user, id))).toMatchObject({ b: "running" });
    await b.by.fail(b.job);
    const over = await untilPipeline(forge.user, id);
    expect([over.status, stepOf(over, "b").status]).toEqual([end, end]);
  },
  60_000,
);

test("a workflow that waits for an ended pipeline ends", async () => {
  const id = await startPipeline(forge.user, { steps: [A], approvals: ["a"] });
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  await closeRun(forge.ctx.pool, id, { status: "cancelled", error: null, errorCode: null });
  await waitFor("its end", async () => (await statusOf(pipelineWorkflowId(id))) === "TERMINATED");
}, 60_000);

test("workflows of a pipeline and a deployment missing in the database end", async () => {
  const restore = await backUp(forge.stack.databaseUrl);
  const pipelineId = await startPipeline(forge.user, { steps: [A], approvals: ["a"] });
  await untilPipeline(forge.user, pipelineId, ["waiting_approval"]);
  const server = await servingWorker(forge, "serves");
  const { deployment_id: deploymentId } = await deploy(forge.user);
  const ids = [pipelineWorkflowId(pipelineId), deploymentWorkflowId(deploymentId)];
  for (const id of ids) {
    await waitFor(`${id} to run`, async () => (await statusOf(id)) === "RUNNING");
  }
  await forge.withoutServers(restore);
  await server.die();
  for (const id of ids) {
    await waitFor(`${id} to end`, async () => (await statusOf(id)) !== "RUNNING");
  }
}, 120_000);
