/**
 * Jobs that one statement inserts, assigns and dispatches (`startNewJob`). They are compared to the
 * scheduling rules of `matchQueue`, and to jobs that are inserted, assigned and dispatched in
 * separate calls.
 */

import fc from "fast-check";
import type pg from "pg";
import { mayRun, type QueuedJob } from "../../core/fleet/matching";
import { requirementGroupOf } from "../../core/jobs/requirements";
import { newId } from "../../platform/ids";
import { all, execute } from "../../platform/postgres/pool";
import { transaction } from "../../platform/postgres/transaction";
import { assignOnlyJob } from "../../services/fleet/assign-only-job";
import type { WaitingWorker } from "../../services/fleet/long-polls";
import { startNewJob } from "../../services/fleet/start-new-job";
import { dispatchJob } from "../../services/jobs/dispatch";
import { JobInserter } from "../../services/jobs/job-inserter";
import { insertUnbudgetedJob, type UnpricedJob } from "../../services/jobs/jobs";
import { newJob } from "../../services/jobs/new-job";
import { matchQueue, NO_NEEDS, OWN_WORKER } from "../support/match-queue";
import { queueJobs } from "../support/queued-jobs";
import {
  OWN_FLEETS,
  openSchedulerDatabase,
  QUEUES,
  type SchedulerDatabase,
} from "../support/scheduler-database";
import { pollOf, rowsOf, stateOf } from "../support/started-attempts";

let forge: SchedulerDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  forge = await openSchedulerDatabase();
  pool = forge.ctx.pool;
});

afterAll(async () => {
  await forge?.stop();
});

const newJobOf = (job: QueuedJob): UnpricedJob => ({
  ...newJob(forge.ctx, {
    type: job.jobType,
    submission: {
      payload: { dataset_uri: "s3://bucket/data.parquet" },
      resources: {},
      params: { depth: 1 },
      tags: ["a"],
      priority: job.priority,
      timeout_s: 60,
      max_attempts: 3,
    },
    userId: job.userId,
    createdBy: "k",
    requestId: "r",
  }),
  job_id: job.jobId,
  req_gpu_count: job.gpuCount,
  req_gpu_tokens: job.gpuTokens,
  req_memory_gb: job.memoryGb,
  req_tags: job.tags,
  requirementGroup: requirementGroupOf(job.userId, job),
  outputIds: { dataset_id: "d" },
  startAfterS: 3,
});

const only = { ...NO_NEEDS, jobId: "only", userId: "ann", priority: 0, queuedAt: 0 };
const PENDING = ["pending", "queued", null];
const RUNNING = ["running", "running", "busy"];

test("on random fleets and queues, a job starts on the worker of the model if its poll waits, and else is queued", async () => {
  let starts = 0;
  const { keyId } = await pollOf(pool, "w");
  await fc.assert(
    fc.asyncProperty(QUEUES, OWN_FLEETS, fc.integer(), async (queue, fleet, seed) => {
      await forge.fill([], fleet);
      const polls = fleet
        .filter((_, n) => (seed >> n) % 4 !== 0)
        .map(({ workerId }) => ({ workerId, keyId, pollSeq: 0, leaseToken: null }));
      const idle = new Map(fleet.map((each) => [each.workerId, each]));
      const waiting = new Set<string>();
      for (const job of queue.map((each) => ({ ...each, avoid: [] }))) {
        const fitting = [...idle.values()].filter((each) => mayRun(job, each));
        const isOnly = !waiting.has(job.userId) && !fitting.some((each) => each.shared);
        const [chosen] = isOnly ? matchQueue([job], fitting) : [];
        const expected = polls.find(({ workerId }) => workerId === chosen?.workerId);
        const { row, started } = await startNewJob(pool, newJobOf(job), polls);
        expect(row).toMatchObject({ job_id: job.jobId, status: "pending", worker_id: null });
        expect(started?.poll).toEqual(expected);
        expect(await stateOf(pool, job.jobId)).toEqual(expected ? RUNNING : PENDING);
        if (!expected) {
          waiting.add(job.userId);
          continue;
        }
        starts += 1;
        idle.delete(expected.workerId);
      }
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 80 },
  );
  expect(starts).toBeGreaterThan(10);
}, 120_000);

test.each(["audit", "deploy"] as const)(
  "a started %s job has the rows, the events and the response of one that was inserted, assigned and dispatched",
  async (jobType) => {
    const job = { ...only, jobType };
    await forge.fill([], [OWN_WORKER]);
    const poll = await pollOf(pool, "w");
    const inserted = await insertUnbudgetedJob(pool, newJobOf(job));
    await assignOnlyJob(pool, "ann", [requirementGroupOf("ann", job)], []);
    const dispatched = await dispatchJob(pool, poll);
    const expected = await rowsOf(pool, "only");

    await forge.fill([], [OWN_WORKER]);
    const now = await pollOf(pool, "w");
    const { row, started } = await startNewJob(pool, newJobOf(job), [
      { ...now, workerId: "v" },
      now,
    ]);
    expect(await rowsOf(pool, "only")).toEqual(expected);
    const date = expect.any(Date);
    const times = { created_at: date, moved_at: date, reconciled_at: date };
    expect(row).toEqual({ ...inserted, ...times });
    expect(started?.poll).toEqual(now);
    expect(started?.job).toEqual({
      ...dispatched,
      is_running: undefined,
      waited_s: 0,
      serving_token: jobType === "deploy" ? expect.stringMatching(/^forge_model_/) : null,
    });
  },
);

const other = { ...only, jobId: "other" };
const capable = { ...OWN_WORKER, workerId: "capable", gpuCount: 1 };

test.each<[string, (poll: WaitingWorker) => Promise<unknown>]>([
  ["the tenant has a queued job", () => queueJobs(pool, [other])],
  ["a shared worker fits", () => execute(pool, "update workers set shared = worker_id <> 'w'")],
  [
    "the key of the poll was revoked",
    ({ keyId }) =>
      execute(pool, "update api_keys set revoked_at = now() where key_id = $1", [keyId]),
  ],
  ["the worker has polled again", () => execute(pool, "update workers set poll_seq = 1")],
  ["another worker is chosen", () => execute(pool, "update workers set gpu_count = 1 - gpu_count")],
  ["no worker fits", () => execute(pool, "update workers set job_types = '{train}'")],
])("if %s, the job is queued", async (_name, change) => {
  await forge.fill([], [OWN_WORKER, capable]);
  const poll = await pollOf(pool, "w");
  await change(poll);
  const { started } = await startNewJob(pool, newJobOf(only), [poll]);
  expect(started).toBeUndefined();
  expect(await stateOf(pool, "only")).toEqual(PENDING);
  expect(await all(pool, "select from workers where status = 'busy'")).toEqual([]);
});

test("the statement does not wait for a locked worker", async () => {
  await forge.fill([], [OWN_WORKER]);
  const poll = await pollOf(pool, "w");
  await transaction(pool, async (db) => {
    await all(db, "select from workers for no key update");
    expect((await startNewJob(pool, newJobOf(only), [poll])).started).toBeUndefined();
  });
  expect(await stateOf(pool, "only")).toEqual(PENDING);
});

test("no job of a tenant with a budget is inserted, and its worker stays idle", async () => {
  await forge.fill([], [OWN_WORKER]);
  const poll = await pollOf(pool, "w");
  await execute(pool, "insert into budgets (user_id, cap_usd) values ('ann', 10)");
  const none = { row: undefined, started: undefined };
  expect(await startNewJob(pool, newJobOf(only), [poll])).toEqual(none);
  expect(await all(pool, "select from workers where status = 'idle'")).toHaveLength(1);
  await execute(pool, "delete from budgets");
});

describe("polls that wait in this process", () => {
  const never = new AbortController().signal;
  const waitFor = (poll: WaitingWorker) =>
    forge.ctx.longPolls.wait("ann", poll, 60_000, never).untilEnded();

  test("of jobs that are submitted one after the other, each starts on the worker that waits for it", async () => {
    const fleet = [1, 2, 3].map((n) => ({ ...OWN_WORKER, workerId: `w${n}` }));
    await forge.fill([], fleet);
    const inserter = new JobInserter(forge.ctx);
    const { keyId } = await pollOf(pool, "w1");
    for (const { workerId } of fleet) {
      const woken = waitFor({ workerId, keyId, pollSeq: 0, leaseToken: null });
      const jobId = newId("job");
      const inserted = await inserter.insert(newJobOf({ ...only, jobId }));
      expect(inserted).toMatchObject({ hasStarted: true, row: { job_id: jobId } });
      expect(await woken).toMatchObject({ job_id: jobId, attempt: 1 });
    }
  });

  test("of jobs that are submitted at once, no worker gets two, and all others are queued", async () => {
    const fleet = [1, 2, 3, 4].map((n) => ({ ...OWN_WORKER, workerId: `w${n}` }));
    await forge.fill([], fleet);
    const { keyId } = await pollOf(pool, "w1");
    const polls = fleet.map(({ workerId }) =>
      waitFor({ workerId, keyId, pollSeq: 0, leaseToken: null }),
    );
    const inserter = new JobInserter(forge.ctx);
    const jobs = Array.from({ length: 8 }, () => newJobOf({ ...only, jobId: newId("job") }));
    const inserted = await Promise.all(
      jobs.map((job) =>
        inserter.insertAndStart(
          "ann",
          () => job,
          async (insert) => ({ row: await transaction(pool, insert), isNew: true }),
        ),
      ),
    );
    const running = await all(pool, "select from attempts where state = 'running'");
    expect(running.length).toBeGreaterThan(0);
    expect(inserted.filter(({ hasStarted }) => hasStarted)).toHaveLength(running.length);
    expect(await all(pool, "select from attempts where state = 'queued'")).toHaveLength(
      jobs.length - running.length,
    );
    expect(await all(pool, "select from workers where status = 'busy'")).toHaveLength(
      running.length,
    );
    for (const { workerId } of fleet) forge.ctx.longPolls.wake([workerId]);
    const ends = await Promise.all(polls);
    expect(ends.filter((end) => typeof end === "object")).toHaveLength(running.length);
  });

  test("if the answer to the statement is lost, the poll is woken and gets the attempt that has started", async () => {
    await forge.fill([], [OWN_WORKER]);
    const poll = await pollOf(pool, "w");
    const woken = waitFor(poll);
    /** A pool that loses the answers to its statements. */
    const losing: pg.Pool = Object.create(pool, {
      query: {
        value: async (query: pg.QueryConfig) => {
          await pool.query(query);
          throw Object.assign(new Error("connection lost"), { code: "ECONNRESET" });
        },
      },
    });
    const inserter = new JobInserter({ ...forge.ctx, pool: losing });
    await expect(inserter.insert(newJobOf(only))).rejects.toThrow("connection lost");
    expect(await woken).toBe("assigned");
    expect(await dispatchJob(pool, poll)).toMatchObject({ job_id: "only", attempt: 1 });
  });

  test("a job whose transaction was repeated, and then found the job of another request, does not reach the poll", async () => {
    await forge.fill([], [OWN_WORKER]);
    const poll = await pollOf(pool, "w");
    const woken = waitFor(poll);
    const inserter = new JobInserter(forge.ctx);
    const inserted = await inserter.insertAndStart(
      "ann",
      () => newJobOf(only),
      async (insert) => {
        await transaction(pool, async (db) => {
          await insert(db);
          throw new Error("deadlock");
        }).catch(() => undefined);
        return { isNew: false };
      },
    );
    expect(inserted).toEqual({ isNew: false, hasStarted: false });
    forge.ctx.longPolls.wake(["w"]);
    expect(await woken).toBe("assigned");
  });

  test("a job that is rolled back does not reach the poll, which goes on waiting", async () => {
    await forge.fill([], [OWN_WORKER]);
    const poll = await pollOf(pool, "w");
    const woken = waitFor(poll);
    const inserter = new JobInserter(forge.ctx);
    const inserting = inserter.insertAndStart(
      "ann",
      () => newJobOf(only),
      (insert) =>
        transaction(pool, async (db) => {
          await insert(db);
          throw new Error("not now");
        }),
    );
    await expect(inserting).rejects.toThrow("not now");
    expect(forge.ctx.longPolls.workerIds).toEqual(["w"]);
    const { hasStarted } = await inserter.insert(newJobOf({ ...only, jobId: "next" }));
    expect(hasStarted).toBe(true);
    expect(await woken).toMatchObject({ job_id: "next" });
  });
});
