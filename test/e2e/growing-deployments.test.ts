/**
 * Many deployments with fewer replicas than their maximum, and many idle workers. Rows are written
 * with SQL, without a server.
 */

import pg from "pg";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { createKey } from "../../services/accounts/keys";
import { ensureUser } from "../../services/accounts/users";
import type { Context } from "../../services/context";
import { deploymentTopic } from "../../services/deployments/deployment-topic";
import { requestGrowth } from "../../services/deployments/growing-deployments";
import { PlacementSweep } from "../../services/deployments/placement-sweep";
import { Courier } from "../../services/outbox/courier";
import { blocksRead } from "../support/blocks-read";
import { type Database, openDatabase } from "../support/database";

const DEPLOYMENTS = 250;
const WORKERS = 2_000;

let forge: Database;

beforeAll(async () => {
  forge = await openDatabase();
  const { pool } = forge.ctx;
  await ensureUser(pool, "ann", "ann");
  await createKey(pool, { userId: "ann", scope: "user", name: "k", madeByAdmin: false });
  const db = new pg.Client({ connectionString: forge.databaseUrl });
  await db.connect();
  // Turn foreign keys off, because the deployments have no artifacts.
  await db.query("set session_replication_role = replica");
  await db.query(
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status,
                          available_until)
     select 'w' || n, 'ann', false, 'cpu', 0, 0, '{}', 'idle', now() + interval '1 hour'
     from generate_series(1, ${WORKERS}) n`,
  );
  await db.query(
    `insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                       timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                       request_id, status, completed_at, result)
     select 'job_' || n, 'ann', 'k', 'deploy', '{}', '{}', '{}', '{}', 0, 60, 3, 1, '{a100}', 0, '{}', 'r',
            'completed', now(), '{}'
     from generate_series(1, ${DEPLOYMENTS}) n`,
  );
  await db.query(
    `insert into deployments (deployment_id, user_id, job_id, min_replicas, max_replicas, active_at, asked, told)
     select 'd' || n, 'ann', 'job_' || n, 1, 2, now(), 1, 1 from generate_series(1, ${DEPLOYMENTS}) n`,
  );
  await db.end();
  await pool.query("vacuum analyze jobs, deployments, placements, workers");
});

afterAll(async () => {
  await forge?.stop();
});

const askAll = async (): Promise<number[]> => {
  const counts: number[] = [];
  let after = "";
  do {
    const { wokenIds, next } = await requestGrowth(forge.ctx.pool, after);
    counts.push(wokenIds.length);
    after = next;
  } while (after !== "");
  return counts;
};

test("idle workers are read once for all deployments, not once for each", async () => {
  const read = await blocksRead(forge, ["workers"], (pool) => requestGrowth(pool, ""));
  expect(read).toBeLessThan(300);
  expect(await askAll()).toEqual([0, 0]);
});

test("deployments that fit an idle worker are woken to grow, page by page, once; not those that it already serves", async () => {
  const { pool } = forge.ctx;
  await execute(
    pool,
    "update workers set gpu_count = 1, gpu_tokens = '{a100}' where worker_id = 'w1'",
  );
  await execute(
    pool,
    `insert into placements (deployment_id, placement, job_id, worker_id, state, serving_at)
     values ('d7', 1, 'job_7', 'w1', 'serving', now())`,
  );
  const [first = 0, rest = 0, ...more] = await askAll();
  expect([first + rest, more]).toEqual([DEPLOYMENTS - 1, []]);
  expect(first).toBeLessThan(DEPLOYMENTS - 1);
  expect(await all(pool, "select deployment_id from deployments where asked = told")).toEqual([
    { deployment_id: "d7" },
  ]);
  expect(await askAll()).toEqual([0, 0]);
});

test("workflows are woken while the sweep of placements waits for a lock", async () => {
  const { pool } = forge.ctx;
  await execute(pool, "update deployments set told = asked, tell_at = now()");
  await execute(pool, "update deployments set asked = asked + 1 where deployment_id = 'd3'");
  const temporal = {
    withDeadline: (_until: number, work: () => Promise<unknown>) => work(),
    workflow: { signalWithStart: async () => undefined },
  };
  const ctx = { ...forge.ctx, temporal } as unknown as Context;
  const components = [new PlacementSweep(ctx), new Courier(ctx, deploymentTopic(ctx))];
  // Lock `workers`, so that the sweep of placements waits when it looks for idle workers. The
  // courier, which wakes the workflows, does not read `workers`.
  const holder = new pg.Client({ connectionString: forge.databaseUrl });
  await holder.connect();
  await holder.query("begin; lock table workers in access exclusive mode");
  try {
    for (const component of components) component.start();
    await waitFor(
      "the workflow to be woken",
      async () =>
        await maybeOne(pool, "select from deployments where told = asked and deployment_id = 'd3'"),
      { timeoutMs: 3_000 },
    );
  } finally {
    await holder.end();
    await Promise.all(components.map((component) => component.stop()));
  }
});
