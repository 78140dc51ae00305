/**
 * Final writes that Postgres refuses permanently. Forge reports them, they block nothing else, and
 * the operator can end their jobs.
 */

import type { Context as ActivityContext } from "@temporalio/activity";
import { notYet } from "../../activities/context";
import { recordStuckWrites } from "../../activities/stuck-writes";
import { artifactPrefix } from "../../core/artifacts/artifacts";
import { jobWorkflowId } from "../../core/workflow-ids";
import type { Job } from "../../dev/api-client";
import { checkInvariants } from "../../dev/invariants";
import { waitFor } from "../../dev/stack/wait";
import { all, execute, maybeOne } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { claimLines } from "../../services/billing/billing-exports";
import { readSummary } from "../support/billing";
import { type Forge, startForge } from "../support/forge";
import { OPERATOR, runForgeServer } from "../support/forge-server";
import { AUDIT, untilEnded } from "../support/jobs";
import { countWaiting, withLock } from "../support/locks";
import { refuse } from "../support/refusals";
import { slowTest } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

interface StuckJob extends Job {
  stuck: { activity: string; tries: number; since: string } | null;
}

beforeAll(async () => {
  forge = await startForge({ FORGE_STUCK_AFTER_TRIES: "3", FORGE_SWEEP_INTERVAL_S: "1" });
  worker = await forge.worker("w");
});

afterAll(async () => {
  await forge?.stop();
});

/** From now on, the database refuses this job's rows in this table. */
const refuseRow = (table: string, jobId: string): Promise<() => Promise<void>> =>
  refuse(forge, `before insert on ${table}`, `new.job_id = '${jobId}'`, `no row for ${jobId}`);

/** A job whose result is accepted, and whose final writes are refused. */
async function stuckJob(
  table: string,
  type = "audit",
  payload: object = AUDIT,
): Promise<{ jobId: string; allow: () => Promise<void> }> {
  const { job_id: jobId } = await forge.user.submit(type, { ...payload });
  const allow = await refuseRow(table, jobId);
  const result = type === "deploy" ? { inference_url: "http://127.0.0.1:1/v1" } : {};
  expect((await worker.complete(await worker.take(), { result })).status).toBe(200);
  await waitFor("the job to be stuck", async () => (await read(jobId)).stuck !== null);
  return { jobId, allow };
}

const read = (jobId: string): Promise<StuckJob> => forge.user.get<StuckJob>(`/api/jobs/${jobId}`);

const end = (jobId: string) =>
  runForgeServer(forge, "jobs", "end", jobId, "--reason", "its bill can't be written");

async function untilFailedInTemporal(jobId: string): Promise<void> {
  const workflow = forge.ctx.temporal.workflow.getHandle(jobWorkflowId(jobId));
  await waitFor("its workflow to have failed", async () => {
    return (await workflow.describe()).status.name === "FAILED";
  });
}

test("a stuck write is shown to its user, in the invariants and to the operator, until it succeeds", async () => {
  const { jobId, allow } = await stuckJob("billing_lines");
  expect(await read(jobId)).toMatchObject({
    status: "running",
    stuck: { activity: "finishJob", tries: expect.any(Number), since: expect.any(String) },
  });
  const listed = await forge.user.get<{ jobs: StuckJob[] }>("/api/jobs");
  expect(listed.jobs.find(({ job_id: id }) => id === jobId)?.stuck).not.toBeNull();
  const word = `job:${jobId} finishJob: `;
  const stuck = await runForgeServer(forge, "jobs", "stuck");
  expect(stuck).toMatchObject({ code: 1, stdout: expect.stringContaining(word) });
  expect(stuck.stdout).toContain(`no row for ${jobId}`);
  expect(await checkInvariants(forge.ctx, new Set([`job:${jobId}`]))).toContainEqual(
    expect.stringMatching(/^a write is stuck: .*finishJob/),
  );

  const { job_id: next } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  expect(await untilEnded(forge.user, next)).toMatchObject({ status: "completed", stuck: null });

  await allow();
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed", stuck: null });
  // The job ends before its activity returns. The list shows the stuck write until the activity has
  // returned.
  await waitFor("nothing to be stuck", async () => {
    return (await runForgeServer(forge, "jobs", "stuck")).code === 0;
  });
  await forge.proveInvariants();
}, 60_000);

test("a bill written after its month was closed goes into the open month, and is dated by its outcome", async () => {
  const { pool } = forge.ctx;
  const { jobId, allow } = await stuckJob("billing_records");
  // Backdate the attempt, as if its bill had been stuck for two months.
  await transaction(pool, async (db) => {
    await execute(db, "set local session_replication_role = replica");
    await execute(
      db,
      `update attempts set started_at = started_at - interval '2 months',
                           ended_at = ended_at - interval '2 months' where job_id = $1`,
      [jobId],
    );
  });
  await allow();
  expect(await untilEnded(forge.user, jobId)).toMatchObject({ status: "completed" });
  const { created_at: outcomeAt, total_cost_usd: usd } = await forge.user.get<{
    created_at: string;
    total_cost_usd: number;
  }>(`/api/billing/records/${jobId}`);
  const open = await forge.user.get<{ period: string; total_cost_usd: number }>(
    "/api/billing/summary",
  );
  expect(outcomeAt.slice(0, 7) < open.period).toBe(true);
  const closed = await forge.user.get(`/api/billing/summary?period=${outcomeAt.slice(0, 7)}`);
  expect(closed).toMatchObject({ total_cost_usd: 0, records: 0 });
  expect(usd).toBeGreaterThan(0);
  expect(open.total_cost_usd).toBeGreaterThanOrEqual(usd);
  // The usage export also reports this bill in the open month.
  const due = await claimLines(pool, { leaseS: 1, limit: 100, needsCustomer: false });
  expect(due).toContainEqual(expect.objectContaining({ job_id: jobId, month: open.period }));
  await forge.proveInvariants();
}, 60_000);

test("the operator ends a job whose bill can't be written; its hours are recorded once that is possible", async () => {
  const { jobId, allow } = await stuckJob("billing_lines");
  const first = await end(jobId);
  expect(first.stderr).toContain("its bill is not final yet");
  expect(first.code).toBe(1);
  expect(await read(jobId)).toMatchObject({
    status: "failed",
    error_code: "job_error",
    error: "ended by an operator: its bill can't be written",
  });
  await untilFailedInTemporal(jobId);
  await allow();
  expect(await end(jobId)).toMatchObject({ code: 0 });
  const lines = await all(
    forge.ctx.pool,
    "select cost_usd::float8, is_billed, unbilled_gpu_hours::float8 as hours from billing_lines where job_id = $1",
    [jobId],
  );
  expect(lines).toEqual([{ cost_usd: 0, is_billed: false, hours: expect.any(Number) }]);
  const audit = await forge.user.get<{ entries: { action: string; subject: string }[] }>(
    "/api/audit-log",
  );
  expect(audit.entries).toContainEqual(
    expect.objectContaining({ action: "job_ended", subject: jobId }),
  );
  await forge.proveInvariants();
}, 60_000);

slowTest(
  "the operator ends a cancelled job whose hours can't be recorded",
  async () => {
    const { pool } = forge.ctx;
    const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
    // Refuse only the server's writes, not those of the operator's command.
    const byServer = `new.job_id = '${jobId}' and current_setting('application_name') <> '${OPERATOR}'`;
    const allow = await refuse(forge, "before insert on billing_lines", byServer);
    const dispatched = await worker.take();
    await forge.user.post(`/api/jobs/${jobId}/cancel`, {});
    expect((await worker.fail(dispatched)).status).toBe(200);
    const cancelled = { status: "failed", error_code: "cancelled" };
    expect(await untilEnded(forge.user, jobId)).toMatchObject(cancelled);
    await waitFor("its last write to be stuck", () =>
      maybeOne(pool, "select from stuck_writes where workflow_id = $1", [jobWorkflowId(jobId)]),
    );
    expect(await end(jobId)).toMatchObject({ code: 0, stderr: "" });
    await untilFailedInTemporal(jobId);
    expect(await read(jobId)).toMatchObject(cancelled);
    await allow();
    await forge.proveInvariants();
  },
  60_000,
);

test("a job ended after its bill was computed costs nothing, and may run again under the same id", async () => {
  const { pool, config, store } = forge.ctx;
  const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
  const allow = await refuse(
    forge,
    "before update of registered_at on artifacts",
    `new.job_id = '${jobId}'`,
  );
  const made = { result: { dataset_id: "team-data-v1" } };
  const dispatched = await worker.take();
  await worker.upload(dispatched, "old.txt", "of the job that is ended");
  expect((await worker.complete(dispatched, made)).status).toBe(200);
  await waitFor("the job to be stuck", async () => (await read(jobId)).stuck !== null);
  const before = await readSummary(forge.user);
  expect(await end(jobId)).toMatchObject({ code: 0, stderr: "" });
  await untilFailedInTemporal(jobId);
  await allow();
  const lines = await all(
    pool,
    "select cost_usd::float8, is_billed from billing_lines where job_id = $1",
    [jobId],
  );
  expect(lines).toEqual([{ cost_usd: 0, is_billed: false }]);
  const { total_cost_usd: costUsd } = await readSummary(forge.user);
  expect(costUsd).toBe(before.total_cost_usd);
  await forge.proveInvariants();
  const again = await forge.user.post<{ job_id: string }>(`/api/jobs/${jobId}/retry`, {});
  const dispatchedAgain = await worker.take();
  await worker.upload(dispatchedAgain, "new.txt", "of the job that is done again");
  await worker.complete(dispatchedAgain, made);
  expect(await untilEnded(forge.user, again.job_id)).toMatchObject({ status: "completed" });
  const { manifest } = await forge.user.get<{ manifest: { files: { path: string }[] } }>(
    "/api/artifacts/team-data-v1",
  );
  expect(manifest.files.map(({ path }) => path)).toEqual(["new.txt"]);
  // Backdate the job's end, so that the sweeper removes the files of the first run.
  await execute(
    pool,
    "update jobs set completed_at = completed_at - make_interval(secs => $2) where job_id = $1",
    [jobId, config.sweep.afterS + 1],
  );
  const prefix = artifactPrefix("audit", "team-data-v1");
  await waitFor("its folder to be empty", async () => (await store.list(prefix)).length === 0);
  await forge.proveInvariants();
}, 120_000);

slowTest(
  "a deployment that could not be written is not billed",
  async () => {
    const { jobId } = await stuckJob("deployments", "deploy", { checkpoint_id: "c" });
    expect(await forge.user.get(`/api/billing/records/${jobId}`)).toMatchObject({
      state: "accruing",
    });
    expect(await end(jobId)).toMatchObject({ code: 0 });
    await untilFailedInTemporal(jobId);
    const { status } = await forge.user.call("GET", `/api/billing/records/${jobId}`);
    expect(status).toBe(404);
    await forge.proveInvariants();
  },
  60_000,
);

slowTest(
  "a deployment that could not be written for two months changes no closed month",
  async () => {
    const { pool } = forge.ctx;
    const { jobId } = await stuckJob("deployments", "deploy", { checkpoint_id: "c" });
    await transaction(pool, async (db) => {
      await execute(db, "set local session_replication_role = replica");
      await execute(
        db,
        `update attempts set started_at = started_at - interval '2 months',
                           ended_at = ended_at - interval '2 months' where job_id = $1`,
        [jobId],
      );
      await execute(
        db,
        "update billing_records set created_at = created_at - interval '2 months' where job_id = $1",
        [jobId],
      );
    });
    expect(await end(jobId)).toMatchObject({ code: 0 });
    await untilFailedInTemporal(jobId);
    const lines = await all<{ is_open: boolean }>(
      pool,
      `select month = date_trunc('month', now() at time zone 'UTC') as is_open from billing_lines where job_id = $1`,
      [jobId],
    );
    expect(lines).toEqual([{ is_open: true }]);
    await forge.proveInvariants();
  },
  60_000,
);

slowTest(
  "a job ended while its bill is written leaves no open bill",
  async () => {
    const { pool } = forge.ctx;
    const lock = 43;
    await execute(
      pool,
      `create function hold_bills() returns trigger language plpgsql as
     $$ begin perform pg_advisory_xact_lock(${lock}); return new; end $$`,
    );
    await execute(
      pool,
      `create trigger hold_bills before insert on billing_records for each row
     execute function hold_bills()`,
    );
    const { job_id: jobId } = await forge.user.submit("deploy", { checkpoint_id: "c" });
    // Keep the server from completing the job after its bill. Otherwise it could complete the job
    // before the operator's command gets the lock on the job.
    const allow = await refuse(
      forge,
      "before update on jobs",
      `new.job_id = '${jobId}' and new.status = 'completed'`,
    );
    const dispatched = await worker.take();
    const hold = `select pg_advisory_xact_lock(${lock})`;
    const ending = await withLock(forge, hold, [], async () => {
      await worker.complete(dispatched, { result: { inference_url: "http://127.0.0.1:1/v1" } });
      await waitFor("the bill to be held", async () => (await countWaiting(forge)) === 1);
      let isOver = false;
      const ended = end(jobId).finally(() => {
        isOver = true;
      });
      // Count only the statements of the operator's command, because the server's next try may also
      // wait for a lock.
      await waitFor(
        "the operator's command to wait",
        async () => isOver || (await countWaiting(forge, OPERATOR)) > 0,
      );
      return { ended };
    });
    expect(await ending.ended).toMatchObject({ code: 0, stderr: "" });
    await untilFailedInTemporal(jobId);
    await allow();
    await execute(pool, "drop trigger hold_bills on billing_records");
    const bills = await all(pool, "select state from billing_records where job_id = $1", [jobId]);
    expect(bills).toEqual([]);
    await forge.proveInvariants();
  },
  60_000,
);

describe("a write with many tries", () => {
  const workflowId = "job:of-nobody";
  const info = {
    workflowExecution: { workflowId, runId: "r" },
    activityType: "finishJob",
    attempt: 3,
    scheduledTimestampMs: Date.now(),
    isLocal: false,
  };
  const stuck = () =>
    maybeOne<{ error: string }>(
      forge.ctx.pool,
      "select error from stuck_writes where workflow_id = $1",
      [workflowId],
    );
  /** Runs `work` like an activity, through the interceptor that records stuck writes. */
  const run = (work: () => Promise<unknown>): Promise<unknown> => {
    const { inbound } = recordStuckWrites(forge.ctx)({ info } as unknown as ActivityContext);
    if (!inbound?.execute) throw new Error("the interceptor is missing");
    return inbound.execute({ args: [], headers: {} }, work);
  };

  test("is reported while it hangs, and no longer once it has succeeded", async () => {
    let work = (): void => undefined;
    const running = run(
      () =>
        new Promise<void>((resolve) => {
          work = resolve;
        }),
    );
    expect((await waitFor("it to be seen", stuck)).error).toMatch(/try 3 has not answered yet/);
    work();
    await running;
    expect(await stuck()).toBeUndefined();
  });

  test("is not reported while it waits for something else", async () => {
    const waits = () => Promise.reject(notYet("the job has not ended yet"));
    await expect(run(waits)).rejects.toThrow("not ended yet");
    expect(await stuck()).toBeUndefined();
    await expect(run(() => Promise.reject(new Error("no disk")))).rejects.toThrow("no disk");
    expect((await stuck())?.error).toMatch(/no disk/);
    await run(async () => undefined);
    expect(await stuck()).toBeUndefined();
  });
});

slowTest(
  "only a job with an ended attempt can be ended this way",
  async () => {
    expect(await end("job_of_nobody")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("does not exist"),
    });
    const { job_id: jobId } = await forge.user.submit("audit", AUDIT);
    expect((await end(jobId)).stderr).toContain("is still in progress; cancel it");
    const dispatched = await worker.take();
    expect((await end(jobId)).stderr).toContain("is still in progress; cancel it");
    await worker.complete(dispatched);
    await untilEnded(forge.user, jobId);
    expect((await end(jobId)).stderr).toContain("has already ended");
    const again = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
    const allow = await refuseRow("attempts", again.job_id);
    await worker.fail(await worker.take(), { retryable: true });
    expect((await end(again.job_id)).stderr).toContain("is still in progress; cancel it");
    await forge.user.post(`/api/jobs/${again.job_id}/cancel`, {});
    await allow();
    await waitFor("its workflow to have tried again", async () => {
      return (await all(forge.ctx.pool, "select from stuck_writes")).length === 0;
    });
    await forge.proveInvariants();
  },
  60_000,
);
