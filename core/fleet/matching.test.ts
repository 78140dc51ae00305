import fc from "fast-check";
import { matchQueue, NO_NEEDS } from "../../test/support/match-queue";
import { type FleetWorker, type HeldWorker, mayRun, type QueuedJob } from "./matching";

const TENANTS = ["ann", "bob", "cyd"];
/** A shared worker that accepts all tenants and job types. */
const OPEN = { userId: "ops", shared: true, jobTypes: null, tenants: null };
const sizes = {
  gpuCount: fc.constantFrom(0, 1, 8),
  gpuTokens: fc.subarray(["a100", "80gb"]),
  memoryGb: fc.constantFrom(0, 40, 80),
  tags: fc.subarray(["eu"]),
};
const queues = fc
  .array(
    fc.record({
      userId: fc.constantFrom(...TENANTS),
      priority: fc.integer({ min: -1, max: 1 }),
      queuedAt: fc.integer({ min: 0, max: 9 }),
      jobType: fc.constantFrom("audit" as const, "train" as const),
      avoid: fc.subarray(["w0", "w1", "w2"]),
      ...sizes,
    }),
    { maxLength: 20 },
  )
  .map((jobs) => jobs.map((each, n): QueuedJob => ({ ...each, jobId: `job_${n}` })));
const fleets = fc
  .array(
    fc.record({
      userId: fc.constantFrom(...TENANTS),
      shared: fc.boolean(),
      jobTypes: fc.option(fc.subarray(["audit", "train"]), { freq: 3 }),
      tenants: fc.option(fc.subarray(TENANTS), { freq: 3 }),
      ...sizes,
    }),
    { maxLength: 12 },
  )
  .map((workers) => workers.map((each, n): FleetWorker => ({ ...each, workerId: `w${n}` })));

const everyCase = (
  check: (queue: QueuedJob[], fleet: FleetWorker[], pairs: [QueuedJob, FleetWorker][]) => void,
): void =>
  fc.assert(
    fc.property(queues, fleets, (queue, fleet) => {
      const pairs = matchQueue(queue, fleet).map(({ jobId, workerId }) => {
        const job = queue.find((each) => each.jobId === jobId);
        const worker = fleet.find((each) => each.workerId === workerId);
        if (!job || !worker) throw new Error("an assignment names an unknown job or worker");
        return [job, worker] as [QueuedJob, FleetWorker];
      });
      check(queue, fleet, pairs);
    }),
    { numRuns: process.env.TEST_SLOW ? 2_000 : 500 },
  );

test("no assignment breaks tenancy or capability, and nothing is assigned twice", () => {
  everyCase((_queue, _fleet, pairs) => {
    for (const [job, worker] of pairs) expect(mayRun(job, worker)).toBe(true);
    expect(new Set(pairs.map(([job]) => job)).size).toBe(pairs.length);
    expect(new Set(pairs.map(([, worker]) => worker)).size).toBe(pairs.length);
  });
});

test("no worker stays idle while a job that fits it waits", () => {
  everyCase((queue, fleet, pairs) => {
    const waiting = queue.filter((job) => !pairs.some(([assigned]) => assigned === job));
    const idle = fleet.filter((worker) => !pairs.some(([, used]) => used === worker));
    for (const job of waiting) {
      for (const worker of idle) expect(mayRun(job, worker)).toBe(false);
    }
  });
});

test("no later or lower-priority job of the same tenant is assigned first", () => {
  everyCase((queue, _fleet, pairs) => {
    const waiting = queue.filter((job) => !pairs.some(([assigned]) => assigned === job));
    for (const [job, worker] of pairs) {
      const own = waiting.filter(({ userId }) => userId === job.userId);
      for (const skipped of own.filter((each) => mayRun(each, worker))) {
        expect(skipped.priority).toBeLessThanOrEqual(job.priority);
        if (skipped.priority < job.priority) continue;
        expect(skipped.queuedAt).toBeGreaterThanOrEqual(job.queuedAt);
      }
    }
  });
});

test("a tenant's own priorities do not change how many shared workers others get", () => {
  const raised = fc.constantFrom("ann", "bob");
  fc.assert(
    fc.property(
      queues,
      fleets,
      raised,
      fc.integer({ min: 2, max: 100 }),
      (queue, fleet, who, by) => {
        const usual = queue.map((job) => ({ ...job, priority: 0, avoid: [] }));
        const pushed = usual.map((job) => (job.userId === who ? { ...job, priority: by } : job));
        expect(matchQueue(pushed, fleet)).toEqual(matchQueue(usual, fleet));
      },
    ),
  );
});

test("priorities of a ranked tenant count against jobs of other tenants", () => {
  const queue = ["ann", "bob"].map((userId, n): QueuedJob => {
    return { ...NO_NEEDS, jobId: `job_${n}`, userId, priority: n, queuedAt: n };
  });
  const fleet = [{ ...NO_NEEDS, ...OPEN, workerId: "w" }];
  const first = (ranked: string[]) => matchQueue(queue, fleet, [], ranked)[0]?.jobId;
  expect([first([]), first(["ann"]), first(["bob"]), first(["*"])]).toEqual([
    "job_0",
    "job_0",
    "job_1",
    "job_1",
  ]);
});

test("tenants that could use all shared workers get equal shares", () => {
  const each = fc.integer({ min: 5, max: 9 });
  fc.assert(
    fc.property(fc.tuple(each, each, each), (counts) => {
      const queue = TENANTS.flatMap((userId, at) =>
        Array.from({ length: counts[at] ?? 0 }, (_, n) => {
          const jobId = `${userId}_${n}`;
          return { ...NO_NEEDS, jobId, userId, priority: 0, queuedAt: at };
        }),
      );
      const fleet = Array.from({ length: 12 }, (_, n) => {
        return { ...NO_NEEDS, ...OPEN, workerId: `w${n}` };
      });
      const given = matchQueue(queue, fleet).map(({ jobId }) => jobId.split("_")[0]);
      for (const userId of TENANTS) {
        expect(given.filter((tenant) => tenant === userId)).toHaveLength(4);
      }
    }),
  );
});

/**
 * One large worker and some small ones, all shared. Tenants keep sending small jobs that fit all
 * workers, while one large job waits. Proves that the large job runs as soon as the large worker
 * has finished the jobs that were queued before it, no matter how many small workers the large
 * job's tenant holds.
 */
test("small jobs never starve a large job", () => {
  const small = { ...NO_NEEDS, gpuCount: 1, memoryGb: 40 };
  const large = { ...small, gpuCount: 8 };
  const arrivals = fc.array(fc.array(fc.constantFrom(...TENANTS), { minLength: 2, maxLength: 6 }), {
    minLength: 40,
    maxLength: 40,
  });
  fc.assert(
    fc.property(
      arrivals,
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 0, max: 5 }),
      (rounds, heldByAnn, ahead) => {
        const holdings: HeldWorker[] = Array.from({ length: heldByAnn }, () => ({
          ...small,
          userId: "ann",
        }));
        const queue: QueuedJob[] = Array.from({ length: ahead }, (_, n) => ({
          ...small,
          jobId: `before_${n}`,
          userId: TENANTS[n % TENANTS.length] ?? "",
          priority: 0,
          queuedAt: 0,
        }));
        queue.push({ ...large, jobId: "large", userId: "ann", priority: 0, queuedAt: 1 });
        const roundOfLarge = rounds.findIndex((tenants, round) => {
          for (const [n, userId] of tenants.entries()) {
            const jobId = `small_${round}_${n}`;
            queue.push({ ...small, jobId, userId, priority: 0, queuedAt: round + 2 });
          }
          const idle = [{ ...large, ...OPEN, workerId: "the-large-one" }];
          const [given] = matchQueue(queue, idle, holdings);
          queue.splice(
            queue.findIndex(({ jobId }) => jobId === given?.jobId),
            1,
          );
          return given?.jobId === "large";
        });
        expect(roundOfLarge).toBe(ahead);
      },
    ),
  );
});
