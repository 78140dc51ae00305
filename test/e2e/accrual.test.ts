/**
 * Checks a deployment's bill after random sequences of actions, some of them concurrent. The
 * actions run the server's SQL on a real Postgres. No server runs, so no background loop changes
 * the rows.
 */

import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import pg from "pg";
import { billJob, requireBillable } from "../../activities/billing/billing";
import { createDeploymentActivities } from "../../activities/deployments/deployments";
import { compareDeploymentHealth } from "../../agent-bridge/deployment-health";
import { DEFAULT_RATE_CARD } from "../../core/billing/rate-card";
import { NO_USAGE } from "../../core/billing/usage";
import { IMPOSSIBLE_DEPLOYMENTS, recomputeAccruals } from "../../dev/deployment-invariants";
import { checkoutRoot } from "../../dev/stack/paths";
import { newId } from "../../platform/ids";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { reserveArtifact } from "../../services/artifacts/artifacts";
import { LIFETIME_DAYS } from "../../services/billing/lifetime";
import {
  endOverdueStops,
  endPlacementsOfLostWorker,
  listPlacements,
} from "../../services/deployments/placements";
import { stopDeployment } from "../../services/deployments/stop-deployment";
import { markDead, recordHeartbeats } from "../../services/fleet/heartbeats";
import { lockWorker, markDecommissioned, upsertWorker } from "../../services/fleet/workers";
import { writeAttemptEnd } from "../../services/jobs/attempts";
import {
  completeDeployJob,
  completePlacementJob,
  findCompletionFacts,
} from "../../services/jobs/complete-job";
import { insertJob } from "../../services/jobs/jobs";
import { newJob } from "../../services/jobs/new-job";
import { type Database, openDatabase } from "../support/database";

let forge: Database;
const USER = "local";
const WORKERS = ["w0", "w1", "w2"];
const SEQUENCES = process.env.TEST_SLOW ? 150 : 20;

beforeAll(async () => {
  forge = await openDatabase({
    FORGE_DEPLOYMENT_MISSING_S: "0.001",
    FORGE_DEPLOYMENT_UNHEALTHY_S: "0.001",
    FORGE_DEPLOYMENT_STOP_GRACE_S: "0.001",
    FORGE_DEPLOYMENT_RETRY_S: "0.001",
  });
  // A heartbeat ends a placement only if a check of the clock finds no change. A process's first
  // check always counts as a change. So make the first check here, as a server does at its start.
  await forge.ctx.clockWatch.check();
});

afterAll(async () => {
  await forge?.stop();
});

type Action = { worker: string } & (
  | { does: "die" | "decommission" | "register" | "take" | "finish" | "stop" | "look" | "expire" }
  | { does: "heartbeat"; lists: boolean | null; isSick: boolean }
);

const worker = fc.constantFrom(...WORKERS);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant("take" as const), worker }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant("finish" as const), worker }) },
  { weight: 5, arbitrary: fc.record({ does: fc.constant("look" as const), worker }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("die" as const), worker }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("register" as const), worker }) },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constantFrom("decommission" as const, "stop" as const, "expire" as const),
      worker,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant("heartbeat" as const),
      worker,
      lists: fc.constantFrom(true, false, null),
      isSick: fc.boolean(),
    }),
  },
);

const heartbeatOf = (lists: boolean, isSick: boolean): Action[] => [
  { does: "heartbeat", worker: "w0", lists, isSick },
];
/** One sequence for each outcome of a placement, because random sequences may miss an outcome. */
const TO_EACH_OUTCOME: Action[][][] = [
  [heartbeatOf(false, false), heartbeatOf(false, false)],
  [heartbeatOf(true, true), heartbeatOf(true, true)],
  [[{ does: "die", worker: "w0" }]],
  [[{ does: "stop", worker: "w0" }]],
];

async function register(workerId: string): Promise<void> {
  await upsertWorker(forge.ctx.pool, {
    workerId,
    userId: USER,
    shared: false,
    bootId: newId("boot"),
    version: null,
    tags: [],
    gpuName: "cpu",
    gpuCount: 0,
    gpuMemoryGb: 0,
    gpuTokens: [],
    jobTypes: null,
    tenants: null,
    boundKeyId: null,
    offerS: 0,
    address: "127.0.0.1",
  });
}

/** Completes a user's deploy job on this worker. @returns its deployment. */
async function begin(workerId: string): Promise<string> {
  const { pool } = forge.ctx;
  const artifactId = newId("dep");
  const job = newJob(forge.ctx, {
    type: "deploy",
    submission: {
      payload: { checkpoint_id: "c", max_replicas: 2 },
      resources: {},
      params: {},
      tags: [],
      priority: 0,
      timeout_s: 60,
      max_attempts: 1,
    },
    userId: USER,
    createdBy: "test",
    requestId: "r",
  });
  const { job_id: jobId } = job;
  await insertJob(pool, {
    ...job,
    rate_card: DEFAULT_RATE_CARD,
    outputIds: { deployment_id: artifactId },
    startAfterS: 3_600,
  });
  await run(jobId, workerId);
  await reserveArtifact(pool, {
    artifactId,
    storageId: artifactId,
    userId: USER,
    jobId,
    attempt: 1,
    artifactType: "deployment",
    kind: "deployment",
    uri: "forge://",
    createdBy: "test",
  });
  const version = await bill(jobId);
  const facts = await findCompletionFacts(pool, jobId, 1);
  if (!facts) throw new Error("no job to complete");
  const manifest = { source_jobs: [], source_artifacts: [], created_at: facts.ended_at } as never;
  const output = { storageId: artifactId, manifest, sizeBytes: 0 };
  const made = { jobId, attempt: 1, version, ...output };
  expect(await transaction(pool, (db) => completeDeployJob(db, made))).toBe(true);
  return artifactId;
}

/**
 * Starts the job on this worker and accepts its result, in one transaction. A server uses two
 * transactions with different times. So the start is written with `clock_timestamp()`: `now()`
 * would give both writes the same time.
 *
 * @returns whether the worker got the job and its result was accepted.
 */
async function run(jobId: string, workerId: string): Promise<boolean> {
  return await transaction(forge.ctx.pool, async (db) => {
    const taken = await execute(
      db,
      `with job as (
         update jobs set status = 'running', attempts = 1, worker_id = $2, started_at = clock_timestamp()
         where job_id = $1 and status = 'pending' and $2 <> all (req_avoid) returning job_id)
       update attempts a set state = 'running', worker_id = $2, started_at = clock_timestamp() from job
       where a.job_id = job.job_id and a.state = 'queued'`,
      [jobId, workerId],
    );
    const result = { inference_url: "http://x/v1" };
    const usage = { ...NO_USAGE, deployment_lifetime_days: 99 };
    const ending = { outcome: "completed", result, usage, metrics: {}, leaseS: 3_600 } as const;
    return taken === 1 && (await writeAttemptEnd(db, { jobId, attempt: 1, ...ending }));
  });
}

/** Writes the job's billing record. @returns the record's version. */
async function bill(jobId: string): Promise<string | null> {
  const attempt = { jobId, attempt: 1, requestId: "r" };
  const billable = await requireBillable(forge.ctx, attempt);
  return (await billJob(forge.ctx, attempt, billable)).record.version;
}

/** The open job that places the deployment, if any. */
async function placing(
  deploymentId: string,
): Promise<{ job_id: string; status: string } | undefined> {
  return await maybeOne(
    forge.ctx.pool,
    `select job_id, status from jobs where deployment_id = $1 and status in ('pending', 'running')
     order by placement limit 1`,
    [deploymentId],
  );
}

async function act(deploymentId: string, one: Action): Promise<void> {
  const { ctx } = forge;
  const { worker: workerId } = one;
  switch (one.does) {
    case "register":
      return await register(workerId);
    case "take": {
      const job = await placing(deploymentId);
      const isAlive = await maybeOne(
        ctx.pool,
        "select from workers where worker_id = $1 and status = 'idle'",
        [workerId],
      );
      if (job?.status === "pending" && isAlive) await run(job.job_id, workerId);
      return;
    }
    case "finish": {
      const job = await placing(deploymentId);
      if (job?.status !== "running") return;
      const version = await bill(job.job_id);
      const done = { jobId: job.job_id, attempt: 1, version, deploymentId };
      await transaction(ctx.pool, (db) => completePlacementJob(db, done));
      return;
    }
    case "look":
      await createDeploymentActivities(ctx).lookAfterDeployment({ deploymentId });
      return;
    case "stop":
      await Promise.all([1, 2].map(() => stopDeployment(ctx, deploymentId, null, "test")));
      return;
    case "expire":
      await endOverdueStops(ctx.pool, ctx.config.deployments.stopGraceS);
      return;
    case "die":
    case "decommission":
      return await transaction(ctx.pool, async (db) => {
        const known = await lockWorker(db, workerId);
        if (one.does === "decommission") await markDecommissioned(db, workerId);
        else await markDead(db, workerId, known?.heartbeat_seq ?? 0, "silent");
        await endPlacementsOfLostWorker(db, workerId);
      });
    case "heartbeat": {
      const reported = { workerId, userId: USER, util: null, memUsed: null, memTotal: null };
      const heartbeat = { ...reported, boundKeyId: null, errorReason: null };
      const [state] = await recordHeartbeats(ctx.pool, [heartbeat], ctx.config.deployments);
      if (!state) return;
      await compareDeploymentHealth(ctx, state, {
        ...(one.lists === null ? {} : { deployments: one.lists ? [deploymentId] : [] }),
        unhealthy_deployments: one.isSick ? [deploymentId] : [],
      });
    }
  }
}

async function violations(): Promise<string[]> {
  const found: string[] = [];
  for (const [name, sql] of Object.entries(IMPOSSIBLE_DEPLOYMENTS)) {
    for (const row of await all(forge.ctx.pool, sql)) found.push(`${name}: ${JSON.stringify(row)}`);
  }
  return [...found, ...(await recomputeAccruals(forge.ctx.pool))];
}

test("the bill is one interval from the first result to the stop; no placement overlaps another or outlives it", async () => {
  const outcomes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(action, { minLength: 1, maxLength: 3 }), { maxLength: 25 }),
      async (steps) => {
        for (const id of WORKERS) await register(id);
        const deploymentId = await begin("w0");
        let ended: unknown;
        for (const step of steps) {
          await Promise.all(step.map((one) => act(deploymentId, one)));
          expect(await violations()).toEqual([]);
          const [row] = await all<{ stop_requested_at: Date | null }>(
            forge.ctx.pool,
            "select stop_requested_at, active_at from deployments where deployment_id = $1",
            [deploymentId],
          );
          // Once a stop is requested, the deployment's times never change.
          if (ended !== undefined) expect(row).toEqual(ended);
          else if (row?.stop_requested_at) ended = row;
        }
        await stopDeployment(forge.ctx, deploymentId, null, "test");
        await act(deploymentId, { does: "finish", worker: "w0" });
        for (const id of WORKERS) {
          await act(deploymentId, { does: "heartbeat", worker: id, lists: false, isSick: false });
        }
        await act(deploymentId, { does: "expire", worker: "w0" });
        await act(deploymentId, { does: "look", worker: "w0" });
        const placements = await all<{ outcome: string }>(
          forge.ctx.pool,
          "select outcome from placements where deployment_id = $1",
          [deploymentId],
        );
        for (const { outcome } of placements) outcomes.add(outcome);
        expect(
          await all(forge.ctx.pool, "select status from deployments where deployment_id = $1", [
            deploymentId,
          ]),
        ).toEqual([{ status: "stopped" }]);
        expect(await violations()).toEqual([]);
        await forge.ctx.pool.query("delete from outbox");
      },
    ),
    { numRuns: SEQUENCES, examples: TO_EACH_OUTCOME.map((steps) => [steps]) },
  );
  expect([...outcomes].sort()).toEqual(["missing", "stopped", "unhealthy", "worker_lost"]);
}, 300_000);

test("a placement made while a stop begins does not begin after the stop", async () => {
  const { clockWatch } = forge.ctx;
  for (const id of WORKERS) await register(id);
  const deploymentId = await begin("w0");
  await act(deploymentId, { does: "die", worker: "w0" });
  const begun = clockWatch.transaction.bind(clockWatch);
  // Make a placement after the stop's transaction has begun, but before it locks the deployment.
  const stopping = jest.spyOn(clockWatch, "transaction").mockImplementationOnce((work, options) =>
    begun(async (db) => {
      await act(deploymentId, { does: "look", worker: "w0" });
      return await work(db);
    }, options),
  );
  await stopDeployment(forge.ctx, deploymentId, null, "test");
  stopping.mockRestore();
  const made = await listPlacements(forge.ctx.pool, [deploymentId]);
  expect(made.map(({ placement, outcome }) => [placement, outcome])).toEqual([
    [1, "worker_lost"],
    [2, "stopped"],
  ]);
  expect(await violations()).toEqual([]);
});

test("models deployed before the migration stay active if their worker is alive, and end if not", async () => {
  const name = `before_${randomBytes(6).toString("hex")}`;
  await forge.ctx.pool.query(`create database ${name}`);
  const url = new URL(forge.databaseUrl);
  url.pathname = `/${name}`;
  const client = new pg.Client({ connectionString: url.toString() });
  await client.connect();
  const folder = join(checkoutRoot(), "platform", "postgres", "migrations");
  const files = readdirSync(folder).sort();
  const own = files.find((file) => file.endsWith("_deployments.sql")) ?? "";
  const apply = async (file: string): Promise<unknown> =>
    await client.query(readFileSync(join(folder, file), "utf8"));
  for (const file of files.filter((one) => one < own)) await apply(file);
  await client.query(`
    insert into users (user_id, name) values ('ann', 'ann');
    insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status)
    values ('alive', 'ann', false, 'cpu', 0, 0, '{}', 'idle'), ('gone', 'ann', false, 'cpu', 0, 0, '{}', 'dead');
    insert into jobs (job_id, user_id, created_by, job_type, payload, resources, params, tags, priority,
                      timeout_s, max_attempts, req_gpu_count, req_gpu_tokens, req_memory_gb, rate_card,
                      request_id, status, attempts, result, completed_at)
    select 'job_' || w, 'ann', 'k', 'deploy', '{"checkpoint_id": "c"}', '{}', '{}', '{}', 0, 60, 3, 0, '{}', 0,
           '{"deployPerMonth": "2"}', 'r', 'completed', 1, '{}', now() from unnest('{alive,gone}'::text[]) w;
    insert into attempts (job_id, attempt, state, shape, priority, worker_id, started_at, ended_at, outcome,
                          result)
    select 'job_' || w, 1, 'ended', 's', 0, w, '2026-01-01', '2026-01-02', 'completed',
           '{"inference_url": "http://x/v1"}' from unnest('{alive,gone}'::text[]) w;
    insert into artifacts (artifact_id, user_id, job_id, attempt, artifact_type, kind, uri, created_by,
                           manifest, registered_at)
    select 'dep_' || w, 'ann', 'job_' || w, 1, 'deployment', 'deployment', 'u', 'k', '{}', now()
    from unnest('{alive,gone}'::text[]) w;
    insert into billing_records (job_id, user_id, job_type, attempt, metrics, unit_costs, cost_breakdown,
                                 total_cost_usd, rate_card, gpu_tokens, formula, created_at)
    select 'job_' || w, 'ann', 'deploy', 1, '{"deployment_lifetime_days": 15}', '{}', '{"deploy": "1"}', 1,
           '{"deployPerMonth": "2"}', '{}', 'f', now() from unnest('{alive,gone}'::text[]) w`);
  await apply(own);
  const { rows } = await client.query(
    `select d.deployment_id, d.status, b.state, b.total_cost_usd, p.state as placement, p.outcome,
            p.inference_url, extract(day from d.stop_requested_at - d.active_at) as days
     from deployments d join placements p using (deployment_id)
     join billing_records b on b.job_id = d.job_id order by 1`,
  );
  const signed = files.find((file) => file.endsWith("_signed_clock_steps.sql")) ?? "";
  for (const file of files.filter((one) => one > own && one < signed)) await apply(file);
  // Pretend that the clock was set forward twice: by an hour before both deployments began, and by
  // a day while both were active.
  await client.query(
    "insert into clock_steps (seen_at, by_s) values ('2025-12-31', 3600), ('2026-01-05', 86400)",
  );
  for (const file of files.filter((one) => one >= signed)) await apply(file);
  const lifetimes = await client.query(
    `select d.deployment_id, active_offset_s, stop_offset_s, ${LIFETIME_DAYS} as days,
            extract(epoch from now() - active_at) / 86400 - 1 as since
     from deployments d order by 1`,
  );
  // A migration adds the metrics that an old record does not have, with the value 0.
  const later = await client.query(
    `select job_id, metrics->'input_tokens' as input, metrics->'deployment_lifetime_days' as days,
            (select array_agg(cost_usd || ' ' || tokens) from billing_lines l where l.job_id = b.job_id) as lines
     from billing_records b order by 1`,
  );
  await client.end();
  await forge.ctx.pool.query(`drop database ${name}`);
  const [alive, gone] = lifetimes.rows;
  expect(alive).toMatchObject({ active_offset_s: 3600, stop_offset_s: null });
  expect(alive.days).toBeCloseTo(alive.since, 6);
  expect(gone).toMatchObject({ active_offset_s: 3600, stop_offset_s: 90_000, days: 14 });
  expect(later.rows).toEqual([
    { job_id: "job_alive", input: 0, days: 0, lines: null },
    { job_id: "job_gone", input: 0, days: 15, lines: ["1.000000 0"] },
  ]);
  expect(rows).toEqual([
    {
      deployment_id: "dep_alive",
      status: "active",
      state: "accruing",
      total_cost_usd: 0,
      placement: "serving",
      outcome: null,
      inference_url: "http://x/v1",
      days: null,
    },
    {
      deployment_id: "dep_gone",
      status: "stopped",
      state: "final",
      total_cost_usd: 1,
      placement: "ended",
      outcome: "worker_lost",
      inference_url: "http://x/v1",
      days: 15,
    },
  ]);
});
