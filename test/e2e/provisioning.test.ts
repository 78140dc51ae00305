/**
 * A job has the status `provisioning_worker` while a worker that fits it is being set up, and no
 * worker in service fits it. These tests check the status. They also check that updating the status
 * is cheap.
 */

import fc from "fast-check";
import pg from "pg";
import { mayRun, type QueuedJob } from "../../core/fleet/matching";
import { all, execute } from "../../platform/postgres/pool";
import { assignOnce } from "../../services/fleet/assignment";
import { markProvisioning } from "../../services/fleet/provisioning";
import { blocksRead } from "../support/blocks-read";
import { NO_NEEDS, OWN_WORKER } from "../support/match-queue";
import {
  FLEETS,
  openSchedulerDatabase,
  QUEUES,
  type SchedulerDatabase,
} from "../support/scheduler-database";
import { slowTest } from "../support/slow";

let forge: SchedulerDatabase;

beforeAll(async () => {
  forge = await openSchedulerDatabase();
});

afterAll(async () => {
  await forge?.stop();
});

test("jobs that wait for a worker being set up show it, however many they are, until the worker is gone", async () => {
  const queue = Array.from({ length: 1_200 }, (_, n) => {
    return { ...NO_NEEDS, jobId: `job_${n}`, userId: "ann", priority: 0, queuedAt: n };
  });
  await forge.fill(queue, [OWN_WORKER]);
  const statuses = async (): Promise<unknown> =>
    await all(forge.ctx.pool, "select status, count(*) as n from jobs group by status");
  await execute(forge.ctx.pool, "update workers set status = 'bootstrapping'");
  await execute(
    forge.ctx.pool,
    `create function refuse_many() returns trigger language plpgsql as $$ begin
       if (select count(*) from moved) > 500 then raise 'too many jobs in one statement'; end if;
       return null;
     end $$`,
  );
  await execute(
    forge.ctx.pool,
    `create trigger refuse_many after update on jobs referencing new table as moved
     for each statement execute function refuse_many()`,
  );
  // `markProvisioning` does not wait for a row that another transaction has locked. A later call
  // changes the row.
  const holder = new pg.Client({ connectionString: forge.databaseUrl });
  await holder.connect();
  try {
    await holder.query("begin; select from jobs where job_id = 'job_999' for no key update");
    expect(await markProvisioning(forge.ctx.pool)).toBe("");
  } finally {
    await holder.end();
  }
  expect(await statuses()).toEqual(
    expect.arrayContaining([
      { status: "provisioning_worker", n: 1_199 },
      { status: "pending", n: 1 },
    ]),
  );
  await markProvisioning(forge.ctx.pool);
  expect(await statuses()).toEqual([{ status: "provisioning_worker", n: 1_200 }]);
  await execute(forge.ctx.pool, "update workers set status = 'dead'");
  await markProvisioning(forge.ctx.pool);
  expect(await statuses()).toEqual([{ status: "pending", n: 1_200 }]);
  await execute(forge.ctx.pool, "drop function refuse_many cascade");
});

test("with more requirement groups than one call reads, the next call goes on after them", async () => {
  const { pool } = forge.ctx;
  const queue = Array.from({ length: 5_100 }, (_, n) => {
    const needs = { ...NO_NEEDS, memoryGb: n };
    return { ...needs, jobId: `job_${n}`, userId: "ann", priority: 0, queuedAt: n };
  });
  const large = { ...NO_NEEDS, memoryGb: 10_000, workerId: "w", jobTypes: null, tenants: null };
  await forge.fill(queue, [{ ...large, userId: "ann", shared: false }]);
  await execute(pool, "update workers set status = 'bootstrapping'");
  const left = "select count(*) as n from jobs where status = 'pending'";
  // The first call changes 5,000 jobs, the maximum for one call. Its result "" means that the next
  // call starts at the first requirement group.
  expect(await markProvisioning(pool)).toBe("");
  expect(await all(pool, left)).toEqual([{ n: 100 }]);
  const after = await markProvisioning(pool);
  expect(await all(pool, left)).toEqual([{ n: 0 }]);
  expect(after).not.toBe("");
  expect(await markProvisioning(pool, after)).toBe("");
}, 60_000);

test("on random fleets and queues, the same jobs as in the model wait for a worker being set up", async () => {
  const statuses = fc.array(
    fc.constantFrom("bootstrapping", "idle", "busy", "draining", "dead", "error"),
    {
      minLength: 12,
      maxLength: 12,
    },
  );
  // The test applies these changes one after the other, without a reset in between.
  const changes = fc.array(statuses, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(QUEUES, FLEETS, changes, async (queue, fleet, rounds) => {
      await forge.fill(queue, fleet);
      for (const round of rounds) {
        await execute(
          forge.ctx.pool,
          `update workers w set status = case s when 'draining' then 'idle' else s end, draining = s = 'draining',
                  error_code = case s when 'error' then 'bootstrap_failed' end
           from unnest($1::text[]) with ordinality round (s, n) where w.worker_id = 'w' || n - 1`,
          [round],
        );
        expect(await markProvisioning(forge.ctx.pool)).toBe("");
        const fitsOne = (job: QueuedJob, ...of: string[]): boolean =>
          fleet.some((each, n) => of.includes(round[n] ?? "") && mayRun(job, each));
        const expected = queue
          .filter((job) => fitsOne(job, "bootstrapping") && !fitsOne(job, "idle", "busy"))
          .map((job) => ({ job_id: job.jobId, is_provisioning: true }));
        const marked = await all(
          forge.ctx.pool,
          `select job_id, is_provisioning from jobs join attempts using (job_id)
           where status = 'provisioning_worker' or is_provisioning order by length(job_id), job_id`,
        );
        expect(marked).toEqual(expected);
      }
    }),
    { numRuns: process.env.TEST_SLOW ? 500 : 30 },
  );
}, 60_000);

test("a revoked assignment no longer waits for a worker being set up", async () => {
  const { pool } = forge.ctx;
  await forge.fill(
    [{ ...NO_NEEDS, jobId: "job", userId: "ann", priority: 0, queuedAt: 0 }],
    [OWN_WORKER],
  );
  // Set only the job's status, as a server of the previous release would: it does not know the
  // attempt's column `is_provisioning`.
  await execute(pool, "update jobs set status = 'provisioning_worker'");
  expect((await assignOnce(pool, [])).pairs).toHaveLength(1);
  await execute(pool, "update attempts set state = 'queued', worker_id = null");
  await execute(pool, "update jobs set status = 'pending', worker_id = null");
  expect(await all(pool, "select is_provisioning from attempts")).toEqual([
    { is_provisioning: false },
  ]);
});

slowTest(
  "the tenants whose jobs wait for a worker being set up are found without reading the queue",
  async () => {
    const waiting = Array.from({ length: 5_000 }, (_, n) => {
      return { ...NO_NEEDS, jobId: `ann_${n}`, userId: "ann", priority: 0, queuedAt: n };
    });
    // These jobs belong to another tenant, whose jobs the worker can't run.
    const others = waiting.map((job, n) => ({ ...job, jobId: `bob_${n}`, userId: "bob" }));
    await forge.fill([...waiting, ...others], [OWN_WORKER]);
    const { pool } = forge.ctx;
    await execute(pool, "update workers set status = 'bootstrapping'");
    for (let after: string | undefined; after !== ""; ) after = await markProvisioning(pool, after);
    await pool.query("vacuum analyze jobs, attempts, workers");
    expect(
      await blocksRead(forge, ["jobs", "attempts"], (one) => markProvisioning(one)),
    ).toBeLessThan(100);
    const marked = "select count(*) as n from jobs where status = 'provisioning_worker'";
    expect(await all(pool, marked)).toEqual([{ n: 5_000 }]);
  },
  60_000,
);
