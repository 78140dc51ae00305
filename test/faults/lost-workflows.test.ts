import { DEPLOYMENT_WORKFLOW } from "../../core/deployments/workflow";
import { PIPELINE_WORKFLOW } from "../../core/pipelines/workflow";
import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { type Forge, startForge } from "../support/forge";

/** Temporal lost its workflows: all kinds of them run again within 60 s (I6). */
const OF_EACH = process.env.TEST_SLOW ? 500 : 200;

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server"] });
});

afterAll(async () => {
  await forge?.stop();
});

/** Rows that need no further work, so that only the workflow's start is measured. */
const ROWS = [
  `insert into pipelines (pipeline_id, user_id, created_by, tags, reuse, rate_card, request_id, shown_bytes,
                          status, told, seen_at)
   select 'lost_' || n, 'local', 'k', '{}', false, '{}', 'r', 1, 'waiting_approval', 1, now() - interval '1 hour'
   from generate_series(1, $1) n`,
  `insert into pipeline_steps (pipeline_id, name, position, job_type, payload, options, needs, optional,
                               needs_approval, status)
   select 'lost_' || n, 'a', 0, 'audit', '{}', '{}', '{}', false, true, 'waiting_approval'
   from generate_series(1, $1) n`,
  `insert into deployments (deployment_id, user_id, job_id, min_replicas, max_replicas, active_at, next_try_at,
                            told, seen_at)
   select 'lost_' || n, 'local', 'lost_' || n, 1, 1, now(), now() + interval '1 hour', 1,
          now() - interval '1 hour'
   from generate_series(1, $1) n`,
];

const countOpen = async (type: string): Promise<number> => {
  const queue = forge.ctx.config.temporal.taskQueue;
  const query = `WorkflowType = '${type}' AND TaskQueue = '${queue}' AND ExecutionStatus = 'Running'`;
  return (await forge.ctx.temporal.workflow.count(query)).count;
};

test(`${OF_EACH} pipelines and as many deployments run again within a minute`, async () => {
  await transaction(forge.ctx.pool, async (db) => {
    // Inserts them without the jobs and artifacts that they reference.
    await execute(db, "set local session_replication_role = replica");
    for (const rows of ROWS) await execute(db, rows, [OF_EACH]);
  });
  for (const type of [PIPELINE_WORKFLOW, DEPLOYMENT_WORKFLOW]) {
    await waitFor(`each ${type} to run`, async () => (await countOpen(type)) === OF_EACH, {
      timeoutMs: 60_000,
    });
  }
}, 90_000);
