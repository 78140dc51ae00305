/** Workflows of every kind that Temporal lost run again within 60 s (invariant I6). */

import { setTimeout as sleep } from "node:timers/promises";
import { DEPLOYMENT_WORKFLOW } from "../../core/deployments/workflow";
import { PIPELINE_WORKFLOW } from "../../core/pipelines/workflow";
import { deploymentWorkflowId, jobWorkflowId, pipelineWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { slowTest } from "../support/slow";

const OF_EACH = process.env.TEST_SLOW ? 500 : 80;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server"] });
});

afterAll(async () => {
  await forge?.stop();
});

/**
 * SQL that inserts rows which need no further work, so that only the workflow's start is measured.
 * Parameters: $1 the number of rows, $2 the prefix of their ids, $3 the seconds since their last
 * change.
 */
const ROWS = [
  `insert into pipelines (pipeline_id, user_id, created_by, tags, reuse, rate_card, request_id, shown_bytes,
                          status, told, seen_at)
   select $2 || n, 'local', 'k', '{}', false, '{}', 'r', 1, 'waiting_approval', 1,
          now() - make_interval(secs => $3)
   from generate_series(1, $1) n`,
  `insert into pipeline_steps (pipeline_id, name, position, job_type, payload, options, needs, optional,
                               needs_approval, status)
   select pipeline_id, 'a', 0, 'audit', '{}', '{}', '{}', false, true, 'waiting_approval'
   from pipelines join generate_series(1, $1) n on pipeline_id = $2 || n
   where seen_at <= now() - make_interval(secs => $3)`,
  `insert into deployments (deployment_id, user_id, job_id, min_replicas, max_replicas, active_at, next_try_at,
                            told, seen_at)
   select $2 || n, 'local', $2 || n, 1, 1, now(), now() + interval '1 hour', 1,
          now() - make_interval(secs => $3)
   from generate_series(1, $1) n`,
];

async function insertRows(count: number, prefix: string, unchangedS: number): Promise<void> {
  await transaction(forge.ctx.pool, async (db) => {
    // Turn foreign keys off, because the rows have no jobs and artifacts.
    await execute(db, "set local session_replication_role = replica");
    for (const rows of ROWS) await execute(db, rows, [count, prefix, unchangedS]);
  });
}

/** Waits until the workflows of these rows run. */
async function untilAllRun(count: number, prefix: string): Promise<void> {
  const queue = forge.ctx.config.temporal.taskQueue;
  for (const [type, idOf] of [
    [PIPELINE_WORKFLOW, pipelineWorkflowId],
    [DEPLOYMENT_WORKFLOW, deploymentWorkflowId],
  ] as const) {
    const query = `WorkflowType = '${type}' AND TaskQueue = '${queue}' AND ExecutionStatus = 'Running'
      AND WorkflowId STARTS_WITH '${idOf(prefix)}'`;
    const allRun = async () => (await forge.ctx.temporal.workflow.count(query)).count === count;
    await waitFor(`each ${type} to run`, allRun, { timeoutMs: 60_000 });
  }
}

test(`${OF_EACH} pipelines and as many deployments run again within a minute`, async () => {
  await insertRows(OF_EACH, "lost_", 3600);
  await untilAllRun(OF_EACH, "lost_");
}, 90_000);

const BATCHES = 6;
const OF_EACH_IN_BATCH = 20;
/**
 * The time between two batches. It differs from the time between two sweeps, so each batch begins
 * at a different moment between two sweeps.
 */
const BATCH_EVERY_MS = 3_700;

slowTest(
  "workflows lost right after a change run again within a minute, at any moment between two sweeps",
  async () => {
    const { temporal } = forge.ctx;
    async function loseSome(batch: number): Promise<number> {
      const worker = await forge.worker(`w-${batch}`);
      const { job_id: id } = await forge.user.submit("audit", AUDIT);
      const handle = temporal.workflow.getHandle(jobWorkflowId(id));
      const status = async () => (await handle.describe()).status.name;
      await waitFor("the start of its workflow", () => status().catch(() => false));
      expect((await worker.take()).job_id).toBe(id);
      await handle.terminate("lost");
      await insertRows(OF_EACH_IN_BATCH, `batch_${batch}_`, 0);
      const lostMs = Date.now();
      await waitFor("the job's workflow to run", async () => (await status()) === "RUNNING", {
        timeoutMs: 120_000,
      });
      await untilAllRun(OF_EACH_IN_BATCH, `batch_${batch}_`);
      return (Date.now() - lostMs) / 1000;
    }
    const losses: Promise<number>[] = [];
    for (let batch = 0; batch < BATCHES; batch++) {
      losses.push(loseSome(batch));
      await sleep(BATCH_EVERY_MS);
    }
    expect(Math.max(...(await Promise.all(losses)))).toBeLessThan(60);
  },
  240_000,
);
