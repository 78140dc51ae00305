import fc from "fast-check";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT } from "../support/jobs";
import { type SeededJob, seedJobs } from "../support/seeded-jobs";
import { createTenant } from "../support/tenants";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_RATE_LIMIT_PER_MINUTE: "1000000" });
});

afterAll(async () => {
  await forge?.stop();
});

interface Bucket {
  at: string;
  submitted: number;
  started: number;
  completed: number;
  failed: number;
  waiting: number;
  running: number;
}

interface Throughput {
  since: string;
  until: string;
  bucket_s: number;
  buckets: Bucket[];
}

interface Counts {
  by_status: Record<string, number>;
  by_job_type: Record<string, Record<string, number>>;
  by_pending_code: Record<string, number>;
  by_error_code: Record<string, number>;
}

const START = Date.parse("2026-03-01T00:00:00Z");
const at = (second: number): string => new Date(START + second * 1000).toISOString();

/**
 * A random job, in seconds: `created` is relative to START; `waited` and `ran` are durations.
 * `waited` is null if the job still waits, and `ran` is null if the job still runs.
 */
const job = fc.record({
  created: fc.integer({ min: -2_000, max: 4_000 }),
  waited: fc.option(fc.integer({ min: 0, max: 3_000 })),
  ran: fc.option(fc.integer({ min: 0, max: 3_000 })),
  starts: fc.boolean(),
  completes: fc.boolean(),
});

type Times = { created: number; started: number | null; ended: number | null; completes: boolean };

/** A job's times, relative to START. A job may have ended without a start. */
function timesOf({ created, waited, ran, starts, completes }: GivenJob): Times {
  const left = waited === null ? null : created + waited;
  const started = starts ? left : null;
  const ended = started === null ? (starts ? null : left) : ran === null ? null : started + ran;
  return { created, started, ended, completes: completes && started !== null };
}

type GivenJob = {
  created: number;
  waited: number | null;
  ran: number | null;
  starts: boolean;
  completes: boolean;
};

function seededJob(userId: string, n: number, times: Times): SeededJob {
  const { created, started, ended, completes } = times;
  const failed = ended !== null && !completes;
  return {
    job_id: `job_${userId}_${n}`,
    user_id: userId,
    job_type: n % 2 === 0 ? "audit" : "train",
    status:
      ended === null ? (started === null ? "pending" : "running") : failed ? "failed" : "completed",
    error_code: failed ? "job_error" : null,
    created_at: at(created),
    started_at: started === null ? null : at(started),
    completed_at: ended === null ? null : at(ended),
  };
}

function bucketOf(jobs: Times[], from: number, before: number): Omit<Bucket, "at"> {
  const isIn = (time: number | null): boolean => time !== null && time >= from && time < before;
  const isBy = (time: number | null): boolean => time !== null && time < before;
  const count = (isCounted: (job: Times) => boolean): number => jobs.filter(isCounted).length;
  return {
    submitted: count(({ created }) => isIn(created)),
    started: count(({ started }) => isIn(started)),
    completed: count(({ ended, completes }) => isIn(ended) && completes),
    failed: count(({ ended, completes }) => isIn(ended) && !completes),
    waiting: count(({ created, started, ended }) => isBy(created) && !isBy(started ?? ended)),
    running: count(({ started, ended }) => isBy(started) && !isBy(ended)),
  };
}

test("throughput matches the jobs' own times in every bucket", async () => {
  let tenants = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(job, { maxLength: 30 }),
      fc.integer({ min: 0, max: 1_500 }),
      fc.integer({ min: 1, max: 2_000 }),
      fc.constantFrom(10, 60, 300, 1_000),
      async (given, since, length, bucketS) => {
        const userId = `seeded-${++tenants}`;
        const { user } = await createTenant(forge, userId);
        const jobs = given.map(timesOf);
        await seedJobs(
          forge.ctx.pool,
          jobs.map((times, n) => seededJob(userId, n, times)),
        );
        const until = since + length;
        const shown = await user.get<Throughput>(
          `/api/jobs/throughput?since=${at(since)}&until=${at(until)}&bucket_s=${bucketS}`,
        );
        // The start of a bucket, in seconds since 1970, is a multiple of the bucket's length. START
        // is not a multiple of 1,000 s, so round the time since 1970, not the time since START.
        const first = Math.floor((START / 1000 + since) / bucketS) * bucketS - START / 1000;
        const expected: Bucket[] = [];
        for (let from = first; from < until; from += bucketS) {
          expected.push({ at: at(from), ...bucketOf(jobs, from, Math.min(until, from + bucketS)) });
        }
        expect(shown.buckets).toEqual(expected);
      },
    ),
    { numRuns: 40 },
  );
});

test("filters by type, and excludes other tenants' jobs", async () => {
  const { user } = await createTenant(forge, "types");
  const times = { created: 5, started: null, ended: null, completes: false };
  await seedJobs(
    forge.ctx.pool,
    [0, 1, 2].map((n) => seededJob("types", n, times)),
  );
  const path = `/api/jobs/throughput?since=${at(0)}&until=${at(60)}&bucket_s=60`;
  const submitted = async (api: typeof user, query = ""): Promise<number | undefined> =>
    (await api.get<Throughput>(`${path}${query}`)).buckets[0]?.submitted;
  expect(await submitted(user)).toBe(3);
  expect(await submitted(user, "&job_type=audit")).toBe(2);
  expect(await submitted(user, "&job_type=audit&job_type=train")).toBe(3);
  expect(await submitted((await createTenant(forge, "no-jobs")).user)).toBe(0);
  expect(await submitted(forge.admin, "&user_id=types")).toBe(3);
  expect(await submitted(forge.admin)).toBeGreaterThanOrEqual(3);
});

test("the number of buckets is limited, and their length has a default", async () => {
  const { user } = await createTenant(forge, "bounded");
  const day = await user.get<Throughput>("/api/jobs/throughput");
  expect(day.bucket_s).toBe(900);
  expect(day.buckets.length).toBeGreaterThanOrEqual(96);
  const refused = await user.call("GET", "/api/jobs/throughput?bucket_s=10");
  expect(refused).toMatchObject({ status: 400, body: { error: { param: "bucket_s" } } });
  const reversed = `/api/jobs/throughput?since=${at(60)}&until=${at(0)}`;
  expect(await user.call("GET", reversed)).toMatchObject({
    status: 400,
    body: { error: { param: "since" } },
  });
});

test("jobs are counted by status, type, error and waiting reason", async () => {
  const { user, worker } = await createTenant(forge, "counted");
  const busy = worker("busy-one");
  await busy.register();
  await user.submit("audit", AUDIT);
  await busy.take();
  const large = { dataset_id: "d", model: "m", resources: { gpu: 8 } };
  for (let n = 0; n < 3; n++) await user.submit("audit", AUDIT);
  for (let n = 0; n < 2; n++) await user.submit("train", large);
  const cancelled = await user.submit("train", large);
  await user.call("POST", `/api/jobs/${cancelled.job_id}/cancel`);
  const hoursAgo = (hours: number): string =>
    new Date(Date.now() - hours * 3_600_000).toISOString();
  await seedJobs(forge.ctx.pool, [
    { job_id: "job_recent", user_id: "counted", status: "completed", completed_at: hoursAgo(2) },
    { job_id: "job_old", user_id: "counted", status: "completed", completed_at: hoursAgo(30) },
    // This job has no queued or running attempt, as between two attempts.
    { job_id: "job_between", user_id: "counted", created_at: hoursAgo(1) },
  ]);
  const none = {
    pending: 0,
    provisioning_worker: 0,
    assigned: 0,
    running: 0,
    completed: 0,
    failed: 0,
  };
  const counts = await user.get<Counts>("/api/jobs/counts");
  expect(counts).toEqual({
    by_status: { ...none, pending: 6, running: 1, completed: 1, failed: 1 },
    by_job_type: {
      generate: none,
      audit: { ...none, pending: 4, running: 1, completed: 1 },
      distill: none,
      train: { ...none, pending: 2, failed: 1 },
      evaluate: none,
      deploy: none,
    },
    by_pending_code: { workers_busy: 3, no_worker_fits: 2, between_attempts: 1 },
    by_error_code: { cancelled: 1 },
    ended_after: expect.any(String),
  });
  const all36 = await user.get<Counts>(`/api/jobs/counts?ended_after=${hoursAgo(36)}`);
  expect(all36.by_status.completed).toBe(2);
  const { user: stranger } = await createTenant(forge, "uncounted");
  expect((await stranger.get<Counts>("/api/jobs/counts")).by_status).toEqual(none);
  const admins = await forge.admin.get<Counts>("/api/jobs/counts?user_id=counted");
  expect(admins.by_pending_code).toEqual(counts.by_pending_code);
});

test("counts and throughput read ended jobs from an index", async () => {
  await all(forge.ctx.pool, "analyze jobs");
  const plan = await all<{ "QUERY PLAN": string }>(
    forge.ctx.pool,
    `explain select job_type, status, error_code, count(*) from jobs
     where user_id = 'counted' and completed_at is not null
       and completed_at > now() - interval '1 day' group by 1, 2, 3`,
  );
  expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).toContain("jobs_ended_by_user");
});
