/**
 * The assignment of a tenant's only queued job, compared to the model of the scheduler on random
 * fleets and queues in a real Postgres.
 */

import fc from "fast-check";
import type pg from "pg";
import { mayRun, type QueuedJob } from "../../core/fleet/matching";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { assignOnlyJob } from "../../services/fleet/assign-only-job";
import type { WaitingWorker } from "../../services/fleet/long-polls";
import { Scheduler } from "../../services/fleet/scheduler";
import { dispatchJob } from "../../services/jobs/dispatch";
import { blocksRead } from "../support/blocks-read";
import { matchQueue, NO_NEEDS, OWN_WORKER } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import {
  OWN_FLEETS,
  openSchedulerDatabase,
  QUEUES,
  type SchedulerDatabase,
  TENANTS,
} from "../support/scheduler-database";
import { pollOf, rowsOf, stateOf } from "../support/started-attempts";

let forge: SchedulerDatabase;

beforeAll(async () => {
  forge = await openSchedulerDatabase();
});

afterAll(async () => {
  await forge?.stop();
});

const assignAfter = (job: QueuedJob, pool = forge.ctx.pool, polls: WaitingWorker[] = []) =>
  assignOnlyJob(pool, job.userId, [requirementGroupOf(job.userId, job)], polls);

test("on random fleets and queues, a tenant's only queued job gets the worker of the model, and no other job any", async () => {
  let assignments = 0;
  await fc.assert(
    fc.asyncProperty(QUEUES, OWN_FLEETS, async (queue, fleet) => {
      await forge.fill([], fleet);
      const idle = new Map(fleet.map((each) => [each.workerId, each]));
      const waiting = new Map<string, QueuedJob>();
      for (const job of queue) {
        await queueJobs(forge.ctx.pool, [job]);
        waiting.set(job.jobId, job);
        const fitting = [...idle.values()].filter((each) => mayRun(job, each));
        const found = await assignAfter(job);
        const sharedWorkerFits = fitting.some((each) => each.shared);
        const ownWorkerFits = fitting.some((each) => !each.shared);
        expect(found).toMatchObject({ ownWorkerFits, sharedWorkerFits });
        const ofTenant = [...waiting.values()].filter((each) => each.userId === job.userId);
        const isOnly = ofTenant.length === 1 && !sharedWorkerFits;
        const [expected] = isOnly ? matchQueue([job], fitting) : [];
        expect(found.assigned?.worker_id).toBe(expected?.workerId);
        if (!expected) continue;
        assignments += 1;
        expect(found.assigned).toMatchObject({ job_id: job.jobId, attempt: 1 });
        expect(await stateOf(forge.ctx.pool, job.jobId)).toEqual(["assigned", "assigned", "busy"]);
        waiting.delete(job.jobId);
        idle.delete(expected.workerId);
      }
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 80 },
  );
  // 80 runs make 31 to 87 assignments, with a median of 56 (measured 400 times).
  expect(assignments).toBeGreaterThan(10);
}, 120_000);

const only = { ...NO_NEEDS, jobId: "only", userId: "ann", priority: 0, queuedAt: 0 };

test.each([
  ["job", "select from jobs where job_id = 'only' for no key update"],
  ["attempt", "select from attempts where job_id = 'only' for no key update"],
  ["least capable worker", "select from workers where worker_id = 'w' for no key update"],
])("a locked %s is left to a pass, without waiting for it", async (_name, lock) => {
  const capable = { ...OWN_WORKER, workerId: "capable", gpuCount: 1 };
  await forge.fill([only], [OWN_WORKER, capable]);
  await transaction(forge.ctx.pool, async (db) => {
    await all(db, lock);
    // `assignOnlyJob` must not wait for the locked row. If it did, the statement would time out.
    expect(await assignAfter(only)).toEqual({
      assigned: undefined,
      ownWorkerFits: true,
      sharedWorkerFits: false,
    });
  });
  expect(await stateOf(forge.ctx.pool, "only")).toEqual(["pending", "queued", null]);
  expect((await assignAfter(only)).assigned).toMatchObject({ job_id: "only", worker_id: "w" });
});

test.each([
  ["a draining worker", "update workers set draining = true"],
  ["a worker that does not poll", "update workers set available_until = now()"],
  ["a busy worker", "update workers set status = 'busy'"],
  ["a worker for other types", "update workers set job_types = '{train}'"],
])("%s gets no job", async (_name, change) => {
  await forge.fill([only], [OWN_WORKER]);
  await execute(forge.ctx.pool, change);
  const none = { assigned: undefined, ownWorkerFits: false, sharedWorkerFits: false };
  expect(await assignAfter(only)).toEqual(none);
});

test("a job whose worker is being set up is assigned, too", async () => {
  await forge.fill([only], [OWN_WORKER]);
  await execute(forge.ctx.pool, "update jobs set status = 'provisioning_worker'");
  const { assigned } = await assignAfter(only);
  expect(assigned).toMatchObject({ job_type: "audit", waited_s: expect.any(Number) });
  expect(await stateOf(forge.ctx.pool, "only")).toEqual(["assigned", "assigned", "busy"]);
});

test.each(["audit", "deploy"] as const)(
  "if the worker's poll waits, its %s attempt starts at once, as after an assignment and a dispatch",
  async (jobType) => {
    const { pool } = forge.ctx;
    const job = { ...only, jobType };
    await forge.fill([job], [OWN_WORKER]);
    const poll = await pollOf(forge.ctx.pool, "w");
    expect((await assignAfter(job)).started).toBeUndefined();
    const dispatched = await dispatchJob(pool, poll);
    const expected = await rowsOf(forge.ctx.pool, "only");

    await forge.fill([job], [OWN_WORKER]);
    const now = await pollOf(forge.ctx.pool, "w");
    const { assigned, started } = await assignAfter(job, pool, [{ ...now, workerId: "v" }, now]);
    expect(assigned).toMatchObject({
      job_id: "only",
      worker_id: "w",
      waited_s: expect.any(Number),
    });
    expect(await rowsOf(forge.ctx.pool, "only")).toEqual(expected);
    expect(started?.poll).toEqual(now);
    expect(started?.job).toEqual({
      ...dispatched,
      is_running: undefined,
      waited_s: expect.any(Number),
      serving_token: jobType === "deploy" ? expect.stringMatching(/^forge_model_/) : null,
    });
    expect(await stateOf(forge.ctx.pool, "only")).toEqual(["running", "running", "busy"]);
  },
);

test.each([
  ["is not the worker's latest", async (poll: WaitingWorker) => ({ ...poll, pollSeq: -1 })],
  ["is of another worker", async (poll: WaitingWorker) => ({ ...poll, workerId: "other" })],
  [
    "has a key that was revoked",
    async (poll: WaitingWorker) => {
      await execute(forge.ctx.pool, "update api_keys set revoked_at = now() where key_id = $1", [
        poll.keyId,
      ]);
      return poll;
    },
  ],
])("if the waiting poll %s, the attempt is assigned and does not start", async (_name, change) => {
  await forge.fill([only], [OWN_WORKER]);
  const poll = await change(await pollOf(forge.ctx.pool, "w"));
  const { assigned, started } = await assignAfter(only, forge.ctx.pool, [poll]);
  expect(assigned).toMatchObject({ job_id: "only", worker_id: "w" });
  expect(started).toBeUndefined();
  expect(await stateOf(forge.ctx.pool, "only")).toEqual(["assigned", "assigned", "busy"]);
});

/** A scheduler that assigns only after a signal. */
class WithoutSweeps extends Scheduler {
  protected override run(): Promise<void> {
    return Promise.resolve();
  }
}

test("if the answer to the statement is lost, the poll is woken and gets the attempt that has started", async () => {
  const { ctx } = forge;
  /** A pool that loses the answers to statements that may start an attempt. */
  const pool: pg.Pool = Object.create(ctx.pool, {
    query: {
      value: async (query: pg.QueryConfig) => {
        const answer = await ctx.pool.query(query);
        if (query.text.includes("own_worker as"))
          throw Object.assign(new Error("connection lost"), { code: "ECONNRESET" });
        return answer;
      },
    },
  });
  await forge.fill([], [OWN_WORKER]);
  const { longPolls } = ctx;
  const scheduler = new WithoutSweeps({ ...ctx, pool });
  scheduler.start();
  try {
    const poll = await pollOf(forge.ctx.pool, "w");
    const waiting = longPolls.wait("ann", poll, 60_000, new AbortController().signal);
    const woken = waiting.untilEnded();
    await queueJobs(ctx.pool, [only]);
    ctx.signals.emit("queue", requirementGroupOf("ann", only));
    expect(await woken).toBe("assigned");
    expect(await stateOf(forge.ctx.pool, "only")).toEqual(["running", "running", "busy"]);
    expect(await dispatchJob(ctx.pool, poll)).toMatchObject({ job_id: "only", attempt: 1 });
  } finally {
    await scheduler.stop();
  }
});

test("of many processes that assign the job at the same time, one does", async () => {
  const fleet = Array.from({ length: 4 }, (_, n) => ({ ...OWN_WORKER, workerId: `w${n}` }));
  // Open a connection for each call, so that the calls run at the same time.
  await Promise.all(fleet.map(() => all(forge.ctx.pool, "select pg_sleep(0.2)")));
  for (let round = 0; round < 10; round++) {
    await forge.fill([only], fleet);
    const found = await Promise.all(fleet.map(() => assignAfter(only)));
    expect(found.filter(({ assigned }) => assigned)).toHaveLength(1);
    const busy = await all(forge.ctx.pool, "select from workers where status = 'busy'");
    expect(busy).toHaveLength(1);
  }
});

test("idle workers behind the first that fits cost the only job nothing", async () => {
  await forge.fill([only], []);
  await forge.longStatements.query(
    `insert into workers (worker_id, user_id, shared, gpu_name, gpu_count, gpu_memory_gb, gpu_tokens, status,
                          available_until)
     select tenant || '-' || n, tenant, false, 'gpu', 0, 0, '{}', 'idle', now() + interval '1 hour'
     from unnest($1::text[]) tenant, generate_series(1, 10000) n`,
    [TENANTS],
  );
  await forge.longStatements.query("vacuum full analyze workers");
  let taken: string | undefined;
  const blocks = await blocksRead(forge, ["workers"], async (pool) => {
    taken = (await assignAfter(only, pool)).assigned?.worker_id;
  });
  expect(taken).toBe("ann-1");
  // Reading all workers of a tenant would take hundreds of blocks.
  expect(blocks).toBeLessThan(100);
});
