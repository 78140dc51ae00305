import { createStepActivities } from "../../activities/pipelines/pipeline-steps";
import { createPipelineActivities } from "../../activities/pipelines/pipelines";
import { deploymentWorkflowId, jobWorkflowId, pipelineWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { closeRun } from "../../services/pipelines/pipelines";
import { backUp } from "../support/backup";
import { deploy, servingWorker } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { startPipeline, statusesOf, stepOf, URI, untilPipeline } from "../support/pipelines";
import type { TestWorker } from "../support/test-worker";

/** Postgres was restored to an earlier state, and Temporal was not. */
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
 * Step a ends and is undone: the workflow runs step b, but the database only knows of step a.
 * @returns a's job, which is dispatched again.
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

test("a pipeline that is cancelled after that ends", async () => {
  const id = await startPipeline(forge.user, { steps: [A, B] });
  const again = await loseTheEndOfA(id);
  await forge.user.post(`/api/pipelines/${id}/cancel`, {});
  await worker.fail(again);
  expect((await untilPipeline(forge.user, id)).status).toBe("cancelled");
}, 180_000);

test("a pipeline that waited for an approval unknown to the database asks again", async () => {
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
}, 180_000);

test("a pipeline with a ready step continues although its workflow waits for something else", async () => {
  const id = await startPipeline(forge.user, { steps: [A, B], approvals: ["b"] });
  await worker.complete(await worker.take());
  await untilPipeline(forge.user, id, ["waiting_approval"]);
  // As before the request for approval.
  await execute(
    forge.ctx.pool,
    `with step as (update pipeline_steps set status = 'pending'
                   where pipeline_id = $1 and name = 'b' returning pipeline_id)
     update pipelines p set status = 'running' from step where p.pipeline_id = step.pipeline_id`,
    [id],
  );
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
