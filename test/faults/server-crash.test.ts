/**
 * Kills forge-server with SIGKILL at each point of a job's path. The test reaches these points from
 * the outside: it freezes Temporal, or holds a lock that the next step needs.
 */

import { existsSync, mkdirSync, renameSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { jobWorkflowId } from "../../core/workflow-ids";
import { waitFor } from "../../dev/stack/wait";
import { all, maybeOne } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilRetried } from "../support/jobs";
import { untilServerWaits, WAITS, withLock } from "../support/locks";
import { slowTest } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

beforeAll(async () => {
  forge = await startForge({}, { own: ["server", "temporal"] });
  worker = await forge.worker("w");
  worker.startHeartbeats(2_000);
});

afterAll(async () => {
  worker?.stopHeartbeats();
  await forge?.stop();
});

/**
 * All processes of Forge except the server that a test kills. They are frozen from `killServer`
 * until `finishesAfterRestart`, so that they don't do its work.
 */
const others = () => forge.servers().slice(1);

async function killServer(): Promise<void> {
  for (const other of others()) other.signal("SIGSTOP");
  await forge.stack.server?.kill();
  // End the killed server's connections. Otherwise Postgres would still run their statements once
  // the test releases its lock.
  await all(
    forge.ctx.pool,
    `select pg_terminate_backend(pid) from pg_stat_activity
     where ${WAITS}`,
  );
}

async function finishesAfterRestart(jobId: string): Promise<void> {
  await forge.stack.startServer();
  for (const other of others()) other.signal("SIGCONT");
  const status = (await forge.user.job(jobId)).status;
  if (status === "pending" || status === "assigned") await worker.complete(await worker.take());
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", attempts: 1 });
  await forge.proveInvariants();
}

async function workflowExists(jobId: string): Promise<boolean> {
  return await forge.ctx.temporal.workflow
    .getHandle(jobWorkflowId(jobId))
    .describe()
    .then(
      () => true,
      () => false,
    );
}

const outboxAttempts = async (jobId: string): Promise<number[]> =>
  (
    await all<{ attempt: number }>(
      forge.ctx.pool,
      "select attempt from outbox where job_id = $1 order by attempt",
      [jobId],
    )
  ).map((row) => row.attempt);

const count = async (table: "billing_records" | "artifacts", jobId: string): Promise<number> => {
  const registered = table === "artifacts" ? "and registered_at is not null" : "";
  const sql = `select count(*) as n from ${table} where job_id = $1 ${registered}`;
  return (await maybeOne<{ n: number }>(forge.ctx.pool, sql, [jobId]))?.n ?? 0;
};

/**
 * A job whose result is accepted while Temporal is frozen, so that its workflow does not continue.
 */
async function acceptedButUndelivered(): Promise<string> {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await waitFor("the workflow", () => workflowExists(job_id));
  await waitFor(
    "the start to be delivered",
    async () => (await outboxAttempts(job_id)).length === 0,
  );
  forge.own("temporal").signal("SIGSTOP");
  expect((await worker.complete(dispatched)).status).toBe(200);
  return job_id;
}

const HOLD_DELETES = `
  create function hold_deletes() returns trigger language plpgsql as $$
    begin perform pg_advisory_xact_lock(42); return old; end $$`;
const HOLD_DELETES_TRIGGER = `create trigger hold_deletes before delete on outbox
  for each row execute function hold_deletes()`;

test("after the submission's commit, before the workflow's start", async () => {
  forge.own("temporal").signal("SIGSTOP");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await killServer();
  forge.own("temporal").signal("SIGCONT");
  expect(await outboxAttempts(job_id)).toEqual([0]);
  expect(await workflowExists(job_id)).toBe(false);
  await finishesAfterRestart(job_id);
});

slowTest("after the workflow's start, before it is recorded", async () => {
  // A trigger on the deletion of outbox entries waits for the test's lock: the server can start the
  // workflow, but can't record the delivery.
  await all(forge.ctx.pool, HOLD_DELETES);
  await all(forge.ctx.pool, HOLD_DELETES_TRIGGER);
  const job_id = await withLock(forge, "select pg_advisory_xact_lock(42)", [], async () => {
    const submitted = await forge.user.submit("audit", AUDIT);
    await untilServerWaits(forge);
    expect(await workflowExists(submitted.job_id)).toBe(true);
    await killServer();
    return submitted.job_id;
  });
  await all(forge.ctx.pool, "drop trigger hold_deletes on outbox");
  expect(await outboxAttempts(job_id)).toEqual([0]);
  await finishesAfterRestart(job_id);
});

slowTest("after job_result's commit, before the workflow's start", async () => {
  forge.own("temporal").signal("SIGSTOP");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  expect((await worker.complete(await worker.take())).status).toBe(200);
  await killServer();
  expect(await outboxAttempts(job_id)).toEqual([0, 1]);
  forge.own("temporal").signal("SIGCONT");
  await finishesAfterRestart(job_id);
});

slowTest("after the workflow's start for a result, before anything else", async () => {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const dispatched = await worker.take();
  await withLock(forge, "lock table billing_records in share mode", [], async () => {
    expect((await worker.complete(dispatched)).status).toBe(200);
    await untilServerWaits(forge);
    expect(await workflowExists(job_id)).toBe(true);
    await killServer();
  });
  expect(await count("billing_records", job_id)).toBe(0);
  await finishesAfterRestart(job_id);
});

test("after job_result's commit, before Temporal knows", async () => {
  const jobId = await acceptedButUndelivered();
  await killServer();
  forge.own("temporal").signal("SIGCONT");
  expect(await outboxAttempts(jobId)).toEqual([1]);
  expect(await count("billing_records", jobId)).toBe(0);
  await finishesAfterRestart(jobId);
});

slowTest("between measuring and billing", async () => {
  const jobId = await acceptedButUndelivered();
  await withLock(forge, "lock table billing_records in share mode", [], async () => {
    forge.own("temporal").signal("SIGCONT");
    await untilServerWaits(forge);
    await killServer();
  });
  expect(await count("billing_records", jobId)).toBe(0);
  await finishesAfterRestart(jobId);
});

/**
 * Kills the server when it has written the job's bill to the database, but not yet the file at
 * `path` to the store: a directory at this path makes each write of the file fail.
 */
async function killedBeforeFile(jobId: string, path: string): Promise<void> {
  const file = join(forge.stack.storeDir, path);
  mkdirSync(file, { recursive: true });
  forge.own("temporal").signal("SIGCONT");
  await waitFor("the bill", async () => (await count("billing_records", jobId)) === 1);
  await untilRetried(forge, jobId);
  await killServer();
  expect(await count("artifacts", jobId)).toBe(0);
  rmdirSync(file);
}

slowTest(
  "between billing and the billing file",
  async () => {
    const jobId = await acceptedButUndelivered();
    await killedBeforeFile(jobId, `billing/records/local/${jobId}.json`);
    await finishesAfterRestart(jobId);
  },
  90_000,
);

slowTest(
  "between billing and manifest",
  async () => {
    const jobId = await acceptedButUndelivered();
    const { artifact_id: id } = (await maybeOne<{ artifact_id: string }>(
      forge.ctx.pool,
      "select artifact_id from artifacts where job_id = $1",
      [jobId],
    )) ?? { artifact_id: "" };
    await killedBeforeFile(jobId, `artifacts/datasets/${id}/manifest.json`);
    await finishesAfterRestart(jobId);
  },
  90_000,
);

slowTest(
  "if the store's directory is missing at the end, the job waits for it and keeps its files",
  async () => {
    const worker = await forge.worker("files");
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const job = await worker.take();
    expect(await worker.upload(job, "scored.jsonl", '{"a":1}\n')).toBe(201);
    const aside = `${forge.stack.storeDir}.aside`;
    renameSync(forge.stack.storeDir, aside);
    await worker.complete(job, { artifacts_uri: null });
    await untilRetried(forge, job_id);
    expect(await worker.upload(job, "late", "x")).toBe(409);
    expect(await forge.user.job(job_id)).toMatchObject({ status: "running" });
    expect(existsSync(forge.stack.storeDir)).toBe(false);
    renameSync(aside, forge.stack.storeDir);
    await untilEnded(forge.user, job_id, 60_000);
    const { artifacts } = await forge.user.get<{ artifacts: { manifest: object }[] }>(
      `/api/jobs/${job_id}/artifacts`,
    );
    expect(artifacts).toMatchObject([
      { manifest: { verified: true, num_rows: 1, files: [{ path: "scored.jsonl" }] } },
    ]);
  },
  90_000,
);

slowTest("between manifest and completed", async () => {
  const jobId = await acceptedButUndelivered();
  await withLock(
    forge,
    // Writing the bill needs only a shared lock on the job, so it succeeds. Completing the job
    // needs a stronger lock, so it waits.
    "select from jobs where job_id = $1 for share",
    [jobId],
    async () => {
      forge.own("temporal").signal("SIGCONT");
      await waitFor("the bill", async () => (await count("billing_records", jobId)) === 1);
      await untilServerWaits(forge);
      const attempt = await maybeOne<{ artifact_id: string }>(
        forge.ctx.pool,
        "select artifact_id from artifacts where job_id = $1",
        [jobId],
      );
      const file = join(
        forge.stack.storeDir,
        `artifacts/datasets/${attempt?.artifact_id}/manifest.json`,
      );
      expect(existsSync(file)).toBe(true);
      await killServer();
    },
  );
  expect(await count("artifacts", jobId)).toBe(0);
  await finishesAfterRestart(jobId);
});
