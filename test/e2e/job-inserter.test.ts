import type pg from "pg";
import { newId } from "../../platform/ids";
import { all, execute } from "../../platform/postgres/pool";
import { JobInserter } from "../../services/jobs/job-inserter";
import type { UnpricedJob } from "../../services/jobs/jobs";
import { newJob } from "../../services/jobs/new-job";
import { type Database, openDatabase } from "../support/database";

let forge: Database;
let inserter: JobInserter;

beforeAll(async () => {
  forge = await openDatabase();
  inserter = new JobInserter(forge.ctx);
  for (const tenant of ["ann", "bob", "cyd"]) {
    await execute(forge.ctx.pool, "insert into users (user_id, name) values ($1, $1)", [tenant]);
  }
});

afterAll(async () => {
  await forge?.stop();
});

const jobOf = (userId: string, given: Partial<UnpricedJob> = {}): UnpricedJob => ({
  ...newJob(forge.ctx, {
    type: "audit",
    submission: {
      payload: { dataset_uri: "s3://bucket/data.parquet" },
      resources: { gpu: 1 },
      params: { depth: [1, { of: "ü\n" }] },
      tags: ["a", "b"],
      priority: 5,
      timeout_s: 60,
      max_attempts: 2,
    },
    userId,
    createdBy: "k",
    requestId: newId("req"),
  }),
  startAfterS: 3,
  ...given,
});
const GONE = Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
const ids = (jobs: UnpricedJob[]): string[] => jobs.map((job) => job.job_id);

test("jobs that are submitted together share statements, and each gets its own row, attempt and start", async () => {
  const { pool } = forge.ctx;
  const jobs = Array.from({ length: 40 }, (_, n) =>
    jobOf("ann", { priority: n % 10, ...(n === 7 ? { startAfterS: null } : {}) }),
  );
  const statements = jest.spyOn(pool, "query");
  const rows = await Promise.all(jobs.map((job) => inserter.insert(job)));
  // One statement inserts the first job at once. The other 39 are inserted together, up to 16 jobs
  // per statement.
  expect(statements).toHaveBeenCalledTimes(4);
  statements.mockRestore();
  for (const [n, job] of jobs.entries()) {
    const { requirementGroup: _group, outputIds: _ids, startAfterS: _start, ...columns } = job;
    const { pipeline_run: _run, reuse_key: _key, ...shown } = columns;
    expect(rows[n]?.row).toMatchObject({
      ...shown,
      status: "pending",
      rate_card: expect.any(Object),
    });
  }
  const stored = await all(
    pool,
    `select job_id, shape, output_ids, a.priority, extract(epoch from due_at - created_at)::int as start
     from attempts a join jobs using (job_id) left join outbox o using (job_id)
     where job_id = any($1) and a.attempt = 1`,
    [ids(jobs)],
  );
  const expected = jobs.map((job) => ({
    job_id: job.job_id,
    shape: job.requirementGroup,
    output_ids: job.outputIds,
    priority: job.priority,
    start: job.startAfterS,
  }));
  expect(new Set(stored)).toEqual(new Set(expected));
});

test("a job that Postgres refuses fails alone, and none that waits fails with it", async () => {
  const refused = jobOf("ann", { timeout_s: 3_000_000_000 });
  const jobs = [
    jobOf("ann"),
    jobOf("ann"),
    refused,
    ...Array.from({ length: 20 }, () => jobOf("ann")),
  ];
  const results = await Promise.allSettled(jobs.map((job) => inserter.insert(job)));
  expect(results.map(({ status }) => status)).toEqual(
    jobs.map((job) => (job === refused ? "rejected" : "fulfilled")),
  );
  const stored = await all<{ job_id: string }>(
    forge.ctx.pool,
    "select job_id from jobs where job_id = any($1)",
    [ids(jobs)],
  );
  expect(stored.map((row) => row.job_id).sort()).toEqual(
    ids(jobs.filter((job) => job !== refused)).sort(),
  );
});

test("no job of a tenant with a budget is inserted", async () => {
  const { pool } = forge.ctx;
  await execute(pool, "insert into budgets (user_id, cap_usd) values ('cyd', 10)");
  const jobs = [jobOf("cyd"), jobOf("cyd"), jobOf("cyd"), jobOf("bob")];
  const rows = await Promise.all(jobs.map((job) => inserter.insert(job)));
  expect(rows.map(({ row }) => row?.user_id)).toEqual([undefined, undefined, undefined, "bob"]);
  expect(await all(pool, "select from jobs where user_id = 'cyd'")).toEqual([]);
});

test("while Postgres is away, all jobs are refused, and none is tried again alone", async () => {
  const { pool } = forge.ctx;
  const statements = jest
    .spyOn(pool, "query")
    .mockImplementation(() => Promise.reject(GONE) as never);
  const results = await Promise.allSettled([1, 2, 3, 4].map(() => inserter.insert(jobOf("ann"))));
  expect(results.map(({ status }) => status)).toEqual(Array(4).fill("rejected"));
  // Two statements: one for the first job, and one for the other three. So the failure of the first
  // statement did not make the waiting jobs fail, and no job was tried again alone.
  expect(statements).toHaveBeenCalledTimes(2);
  statements.mockRestore();
});

test("a large job is inserted alone", async () => {
  const { pool } = forge.ctx;
  const large = () => jobOf("ann", { params: { text: "x".repeat(300_000) } });
  const jobs = [jobOf("ann"), jobOf("ann"), large(), large(), jobOf("ann"), jobOf("ann")];
  const statements = jest.spyOn(pool, "query");
  const rows = await Promise.all(jobs.map((job) => inserter.insert(job)));
  expect(rows.map(({ row }) => row?.job_id)).toEqual(ids(jobs));
  // Five statements: one for the first job, which does not wait; one for the second job; one for
  // each large job; and one for the last two jobs together.
  expect(statements).toHaveBeenCalledTimes(5);
  statements.mockRestore();
});

test("if Postgres goes away while jobs are inserted one by one, each caller learns what became of its own", async () => {
  const { pool } = forge.ctx;
  const refused = jobOf("ann", { timeout_s: 3_000_000_000 });
  const lost = jobOf("ann");
  const jobs = [jobOf("ann"), refused, lost, jobOf("ann"), jobOf("ann")];
  const query = pool.query.bind(pool) as (config: pg.QueryConfig) => Promise<unknown>;
  const statements = jest.spyOn(pool, "query").mockImplementation(((config: pg.QueryConfig) => {
    // A statement that inserts only this job has the job's id as a parameter. A statement that
    // inserts several jobs has one parameter with all of them.
    const isLost = config.values?.includes(lost.job_id);
    return isLost ? Promise.reject(GONE) : query(config);
  }) as never);
  const results = await Promise.allSettled(jobs.map((job) => inserter.insert(job)));
  statements.mockRestore();
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
});
