import { jobWorkflowId, pipelineWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { closeRun, lockPipeline, openRun } from "../../services/pipelines/pipelines";
import { replaceGate } from "../../services/pipelines/step-changes";
import { requestWorkflowWake } from "../../services/pipelines/workflow-wakes";
import { stopAll } from "../support/deployments";
import { type Forge, startForge } from "../support/forge";
import { untilEnded } from "../support/jobs";
import {
  BYO_DATA,
  startPipeline,
  statusesOf,
  stepOf,
  URI,
  untilPipeline,
  WorkerPool,
} from "../support/pipelines";
import { runDuringKills } from "../support/pipelines-during-kills";
import { refuse } from "../support/refusals";
import { slowTest } from "../support/slow";

let forge: Forge;

/**
 * The number of rounds. Few, because in each round Temporal needs seconds to notice that the
 * Temporal worker was killed.
 */
const ROUNDS = 5;
/** How many pipelines get concurrent resumes, cancels and approvals. */
const AT_ONCE = 6;
const PIPELINES_DURING_KILLS = 8;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_HEARTBEAT_TIMEOUT_S: "6",
      HEARTBEAT_INTERVAL: "0.5",
      FORGE_RECONCILE_AFTER_S: "2",
      FORGE_DEPLOYMENT_STOP_GRACE_S: "1",
    },
    { split: true, own: ["postgres", "temporal"] },
  );
});

/**
 * Stops the test's deployments. Otherwise, when their worker is dead, Forge would place them again
 * on workers of the next test.
 */
afterEach(async () => {
  await stopAll(forge.user);
  await forge.proveInvariants();
});

afterAll(async () => {
  await forge?.stop();
});

test("while Temporal is unavailable a pipeline is accepted, approved and cancelled; its workflow follows when Temporal is back", async () => {
  const crew = await new WorkerPool(forge).start(1, "first");
  const waiting = await startPipeline(forge.user, { ...BYO_DATA, approvals: ["audit"] });
  const doomed = await startPipeline(forge.user, { ...BYO_DATA, approvals: ["audit"] });
  for (const id of [waiting, doomed]) await untilPipeline(forge.user, id, ["waiting_approval"]);
  await forge.own("temporal").kill();
  const late = await startPipeline(forge.user, BYO_DATA);
  await forge.user.post(`/api/pipelines/${waiting}/approve`, {});
  await forge.user.post(`/api/pipelines/${doomed}/cancel`, {});
  await forge.stack.startTemporal();
  const ends = await Promise.all(
    [late, waiting, doomed].map(async (id) => (await untilPipeline(forge.user, id)).status),
  );
  expect(ends).toEqual(["completed", "completed", "cancelled"]);
  await crew.stop();
}, 120_000);

test("a manually terminated workflow is restarted and continues with its current steps", async () => {
  const worker = await forge.worker("patient");
  worker.startHeartbeats();
  const id = await startPipeline(forge.user, BYO_DATA);
  await worker.complete(await worker.take());
  const distill = await worker.take();
  await forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id)).terminate("by hand");
  await waitFor("another execution", async () => {
    const handle = forge.ctx.temporal.workflow.getHandle(pipelineWorkflowId(id));
    return (await handle.describe()).status.name === "RUNNING";
  });
  await worker.complete(distill);
  for (let left = 3; left > 0; left--) await worker.complete(await worker.take());
  const done = await untilPipeline(forge.user, id);
  expect(done.status).toBe("completed");
  expect(stepOf(done, "distill").job_id).toBe(distill.job_id);
  worker.stopHeartbeats();
}, 60_000);

test("a step whose workflow was terminated before it wrote its job still runs", async () => {
  const worker = await forge.worker("late");
  worker.startHeartbeats();
  const { pool, temporal } = forge.ctx;
  const allow = await refuse(forge, "before insert on jobs", "new.pipeline_id is not null");
  const steps = [{ name: "a", job_type: "audit", payload: { dataset_uri: URI } }];
  const id = await startPipeline(forge.user, { steps });
  const jobId = await waitFor("the step to be begun", async () => {
    const [step] = await all<{ job_id: string | null }>(
      pool,
      "select job_id from pipeline_steps where pipeline_id = $1",
      [id],
    );
    return step?.job_id ?? undefined;
  });
  const workflow = temporal.workflow.getHandle(jobWorkflowId(jobId));
  await waitFor("its workflow to try again and again", async () => {
    const { raw } = await workflow.describe();
    return raw.pendingActivities?.some(
      ({ activityType }) => activityType?.name === "insertStepJob",
    );
  });
  await workflow.terminate("by hand");
  await allow();
  const dispatched = await worker.take(30);
  expect(dispatched.job_id).toBe(jobId);
  await worker.complete(dispatched);
  expect((await untilPipeline(forge.user, id)).status).toBe("completed");
  worker.stopHeartbeats();
}, 60_000);

test("a cancel whose server dies in the middle is finished by the workflow", async () => {
  const worker = await forge.worker("cut");
  worker.startHeartbeats();
  const id = await startPipeline(forge.user, BYO_DATA);
  const audit = await worker.take();
  // Run only the cancel's transaction, as if the server had died right after it.
  await forge.ctx.pool.query(
    `update pipelines set cancel_requested_at = now(), asked = asked + 1, due_at = now()
     where pipeline_id = $1`,
    [id],
  );
  await waitFor("the command", async () =>
    (await worker.heartbeat()).commands.some(({ job_id }) => job_id === audit.job_id),
  );
  await worker.fail(audit);
  const over = await untilPipeline(forge.user, id);
  expect(over.status).toBe("cancelled");
  expect(statusesOf(over)).toMatchObject({ audit: "cancelled", distill: "cancelled" });
  worker.stopHeartbeats();
}, 60_000);

slowTest(
  "a workflow killed right after it wrote the end of a run does not change the next run",
  async () => {
    const worker = await forge.worker("unlucky");
    worker.startHeartbeats();
    const body = { steps: [{ name: "a", job_type: "audit", payload: { dataset_uri: URI } }] };
    for (let round = 1; round <= ROUNDS; round++) {
      const id = await startPipeline(forge.user, body);
      await worker.fail(await worker.take());
      await waitFor(
        "the last write of the run",
        async () => {
          const found = "select from pipelines where pipeline_id = $1 and status = 'failed'";
          return (await all(forge.ctx.pool, found, [id])).length === 1;
        },
        { everyMs: 1 },
      );
      await forge.stack.temporalWorker?.kill();
      await forge.user.post(`/api/pipelines/${id}/resume`, {});
      await forge.stack.startTemporalWorker();
      await worker.complete(await worker.take());
      expect(await untilPipeline(forge.user, id)).toMatchObject({ status: "completed", run: 2 });
    }
    worker.stopHeartbeats();
  },
  120_000,
);

slowTest(
  "a pipeline that waited for an approval continues if it is resumed before Temporal knows of its cancel",
  async () => {
    const worker = await forge.worker("hopeful");
    worker.startHeartbeats();
    const steps = [{ name: "a", job_type: "audit", payload: { dataset_uri: URI } }];
    const id = await startPipeline(forge.user, { steps, approvals: ["a"] });
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    await forge.stack.temporalWorker?.kill();
    await forge.user.post(`/api/pipelines/${id}/cancel`, {});
    // Write the end of the run as the workflow would. This simulates a Temporal worker that was
    // killed right after this write.
    const end = { status: "cancelled", error: null, errorCode: null } as const;
    await closeRun(forge.ctx.pool, id, end);
    await forge.user.post(`/api/pipelines/${id}/resume`, {});
    await forge.stack.startTemporalWorker();
    await untilPipeline(forge.user, id, ["waiting_approval"]);
    await forge.user.post(`/api/pipelines/${id}/approve`, {});
    await worker.complete(await worker.take());
    expect(await untilPipeline(forge.user, id)).toMatchObject({ status: "completed", run: 2 });
    worker.stopHeartbeats();
  },
  120_000,
);

slowTest(
  "a pipeline still ends after many concurrent resumes, cancels and approvals",
  async () => {
    const crew = await new WorkerPool(forge).start(2, "calm");
    const ids = await Promise.all(
      Array.from({ length: AT_ONCE }, () =>
        startPipeline(forge.user, { ...BYO_DATA, approvals: ["distill", "train"] }),
      ),
    );
    const act = async (id: string): Promise<void> => {
      const actions = ["approve", "resume", "cancel", "approve", "approve"];
      for (let turn = 0; turn < 25; turn++) {
        const action = actions[Math.floor(Math.random() * actions.length)];
        await forge.user.call("POST", `/api/pipelines/${id}/${action}`, {});
      }
    };
    await Promise.all(ids.flatMap((id) => [act(id), act(id)]));
    for (const id of ids) {
      await forge.user.call("POST", `/api/pipelines/${id}/cancel`, {});
      await untilPipeline(forge.user, id);
      await forge.user.call("POST", `/api/pipelines/${id}/resume`, { from: "audit" });
      for (const step of ["distill", "train"]) {
        await waitFor(`${step} to be approved`, async () => {
          const answer = await forge.user.call("POST", `/api/pipelines/${id}/approve`, { step });
          return answer.status === 200;
        });
      }
      expect((await untilPipeline(forge.user, id)).status).toBe("completed");
    }
    await crew.stop();
  },
  120_000,
);

test("a gate verdict of an ended run writes nothing into the next run", async () => {
  const worker = await forge.worker("judged");
  worker.startHeartbeats();
  const steps = [{ name: "a", job_type: "audit", payload: { dataset_uri: URI } }];
  const gates = [{ step: "a", condition: "quality.clarity_mean > 0.9" }];
  const id = await startPipeline(forge.user, { steps, gates });
  const dispatched = await worker.take();
  await transaction(forge.ctx.pool, async (db) => {
    await lockPipeline(db, id, null);
    await execute(db, "select from pipeline_steps where pipeline_id = $1 for update", [id]);
    await worker.complete(dispatched, { result: { quality: { clarity_mean: 0.5 } } });
    await untilEnded(forge.user, dispatched.job_id);
    await waitFor("the verdict to wait for our locks", async () => {
      const waiting = await all(
        forge.ctx.pool,
        `select from pg_stat_activity where datname = current_database()
         and wait_event_type = 'Lock' and query like '%pipeline%'`,
      );
      return waiting.length > 0;
    });
    // Resume the pipeline with another gate condition. Meanwhile, the transaction that writes the
    // first gate's verdict waits for the locks that this transaction holds.
    await openRun(db, id, null);
    await replaceGate(db, id, "a", "quality.clarity_mean > 0.4");
    await requestWorkflowWake(db, id, 0);
  });
  expect(await untilPipeline(forge.user, id)).toMatchObject({ status: "completed", run: 2 });
  await waitFor("its workflow to be notified", async () => {
    const notified = "select from pipelines where pipeline_id = $1 and told = asked";
    return (await all(forge.ctx.pool, notified, [id])).length > 0;
  });
  worker.stopHeartbeats();
}, 120_000);

slowTest(
  "every process is killed in turn while pipelines run: each completes once",
  async () => {
    const { kills } = await runDuringKills(forge, PIPELINES_DURING_KILLS);
    expect(new Set(kills).size).toBe(6);
  },
  180_000,
);
