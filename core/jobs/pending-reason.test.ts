import fc from "fast-check";
import { matchQueue, NO_NEEDS, OWN_WORKER } from "../../test/support/match-queue";
import { explainPending, type FleetMember, type WaitingJob } from "./pending-reason";
import type { Queue, QueuedGroup } from "./queue-position";

const job: WaitingJob = { ...NO_NEEDS, jobId: "job_5", userId: "ann", priority: 0, queuedAt: 5 };

const worker = (more: Partial<FleetMember> = {}): FleetMember => ({
  ...OWN_WORKER,
  gpuName: "cpu",
  status: "busy",
  statusReason: null,
  draining: false,
  polls: false,
  serves: null,
  ...more,
});

const group = (userId: string, at: number[], more: Partial<QueuedGroup> = {}): QueuedGroup => ({
  ...NO_NEEDS,
  userId,
  jobs: at.map((queuedAt) => ({ jobId: `job_${queuedAt}`, priority: 0, queuedAt })),
  hasMore: false,
  ...more,
});

const queueOf = (...groups: QueuedGroup[]): Queue => ({ groups, hasMore: false });

test("no worker is registered, or only workers of another tenant", () => {
  expect(explainPending(job, [], queueOf())).toMatchObject({ code: "no_worker" });
  const foreign = [worker({ userId: "bob", status: "idle", polls: true })];
  expect(explainPending(job, foreign, queueOf())).toMatchObject({ code: "no_worker" });
});

test("a deployment waits for a worker that does not serve it yet", () => {
  const placedAgain = { ...job, avoid: ["w"] };
  expect(explainPending(placedAgain, [worker()], queueOf())).toMatchObject({
    code: "no_worker_fits",
    message: "needs another worker than those that serve its deployment or on which it failed",
    requirement: { name: "worker", available: null },
  });
  expect(
    explainPending(placedAgain, [worker(), worker({ workerId: "v" })], queueOf()),
  ).toMatchObject({
    code: "workers_busy",
  });
});

test.each([
  ["gpu", { gpuCount: 4 }, "needs 4 GPUs; the nearest worker has 2", 4, 2],
  [
    "memory_gb",
    { memoryGb: 141 },
    "needs 141 GB of GPU memory; the nearest worker has 80",
    141,
    80,
  ],
  [
    "gpu_type",
    { gpuTokens: ["h200"] },
    "needs a GPU of type h200; the nearest worker has NVIDIA A100",
    "h200",
    "NVIDIA A100",
  ],
  [
    "job_type",
    { jobType: "train" as const },
    "needs a worker that takes train jobs; the nearest worker has audit",
    "train",
    "audit",
  ],
  ["tags", { tags: ["us"] }, "needs a worker tagged us; the nearest worker has eu", "us", "eu"],
])(
  "no worker fits because of %s: reports the nearest unmet requirement",
  (name, needs, message, needed, available) => {
    const a100 = {
      gpuName: "NVIDIA A100",
      gpuTokens: ["a100", "nvidia"],
      memoryGb: 80,
      tags: ["eu"],
    };
    const jobTypes = ["audit"];
    const fleet = [{}, { ...a100, gpuCount: 2 }, { ...a100, gpuCount: 1 }].map((more) =>
      worker({ ...more, jobTypes }),
    );
    expect(explainPending({ ...job, ...needs }, fleet, queueOf())).toEqual({
      code: "no_worker_fits",
      message,
      requirement: { name, needed, available },
      queue_position: null,
    });
  },
);

test("matching workers out of service: the message says why", () => {
  const dead = worker({ workerId: "box", status: "dead", statusReason: "no heartbeat for 30 s" });
  expect(explainPending(job, [dead], queueOf())).toMatchObject({
    code: "no_worker_available",
    message: "matching workers are not available: box is dead (no heartbeat for 30 s)",
  });
  const shared = worker({
    workerId: "x",
    userId: "ops",
    shared: true,
    status: "idle",
    draining: true,
  });
  expect(explainPending(job, [shared], queueOf()).message).toMatch(
    /: a shared worker is draining$/,
  );
});

test("a worker that is being set up", () => {
  const coming = worker({ workerId: "box", status: "bootstrapping" });
  expect(explainPending(job, [coming], queueOf())).toMatchObject({ code: "provisioning" });
  // Another matching worker is in service, so the job waits for that worker, not for the setup.
  expect(explainPending(job, [coming, worker()], queueOf())).toMatchObject({
    code: "workers_busy",
  });
});

test("an idle worker that polls: the job will be assigned shortly", () => {
  const idle = worker({ status: "idle", polls: true });
  expect(explainPending(job, [idle], queueOf())).toMatchObject({ code: "scheduling" });
});

test("idle workers that do not poll", () => {
  expect(
    explainPending(job, [worker({ workerId: "box", status: "idle" })], queueOf()),
  ).toMatchObject({
    code: "no_worker_available",
    message: "idle, but not polling for work: box",
  });
});

test("busy workers: the position among the jobs that compete for them", () => {
  const queue = queueOf(
    group("ann", [3, 4, 5, 6]),
    group("bob", [1, 2]),
    group("ann", [0], { gpuCount: 8 }),
  );
  expect(explainPending(job, [worker()], queue)).toEqual({
    code: "workers_busy",
    message: "the matching worker is busy; number 3 in the queue",
    requirement: null,
    queue_position: 3,
  });
});

test("a job beyond the part of the queue that was read has no position", () => {
  const ownIsLong = queueOf(group("ann", [1, 2, 3], { hasMore: true }));
  const hasMoreGroups = { ...queueOf(group("bob", [1])), hasMore: true };
  for (const queue of [ownIsLong, hasMoreGroups]) {
    expect(explainPending(job, [worker()], queue)).toMatchObject({
      code: "workers_busy",
      message: "the matching worker is busy; the queue is long",
      queue_position: null,
    });
  }
});

test("busy workers, and idle ones that do not poll", () => {
  const fleet = [worker(), worker({ workerId: "v", status: "idle", polls: false })];
  expect(explainPending(job, fleet, queueOf(group("ann", [5])))).toMatchObject({
    code: "workers_busy",
    message: expect.stringMatching(
      /^1 of 2 matching workers are busy, and the others don't poll for work; /,
    ),
  });
});

test("jobs that were not read do not hide the position of a job that goes first", () => {
  const urgent = { ...job, priority: 5 };
  const queue = queueOf(group("bob", [1, 2, 3], { hasMore: true }));
  expect(explainPending(urgent, [worker()], queue, ["*"])).toMatchObject({ queue_position: 1 });
});

test("a tenant over its share: why later jobs go first", () => {
  const pool = ["a", "b", "c"].map((workerId, n) =>
    worker({ workerId, userId: "ops", shared: true, serves: n < 2 ? "ann" : "bob" }),
  );
  const queue = queueOf(group("ann", [5]), group("bob", [6, 7, 8]));
  expect(explainPending(job, pool, queue)).toMatchObject({
    code: "over_share",
    message: expect.stringMatching(
      /^all 3 matching workers are busy; .* than yours \(2\) go first$/,
    ),
    queue_position: 2,
  });
});

/**
 * The position must agree with the order in which the matcher assigns jobs, if workers become idle
 * one after the other.
 */
test("the queue position is the order in which the matcher assigns the job", () => {
  const tenants = ["ann", "bob", "cyd"];
  const types = ["audit", "distill"] as const;
  const rankings = fc.constantFrom([], ["*"], ["bob"]);
  const queues = fc
    .array(
      fc.record({
        userId: fc.constantFrom(...tenants),
        priority: fc.constantFrom(0, 0, 1),
        jobType: fc.constantFrom(...types),
      }),
      { minLength: 1, maxLength: 15 },
    )
    .map((jobs) =>
      jobs.map((each, n): WaitingJob => {
        return { ...NO_NEEDS, ...each, jobId: `job_${String(n).padStart(2, "0")}`, queuedAt: n };
      }),
    );
  const busy = fc.array(fc.constantFrom(...tenants), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(
      queues,
      busy,
      rankings,
      fc.nat(),
      fc.nat(4),
      (queue, serves, ranked, pick, read) => {
        const mine = queue[pick % queue.length];
        if (!mine) return;
        const fleet = serves.map((tenant, n) =>
          worker({ workerId: `w${n}`, userId: "ops", shared: true, serves: tenant }),
        );
        const groups = tenants.flatMap((userId) =>
          types.map((jobType) => ({
            ...group(userId, []),
            jobType,
            jobs: queue
              .filter((each) => each.userId === userId && each.jobType === jobType)
              .sort((a, b) => b.priority - a.priority || a.queuedAt - b.queuedAt),
          })),
        );
        // One worker per waiting job becomes idle; the other workers stay busy.
        const idle = queue.map((_, n) =>
          worker({ workerId: `idle_${String(n).padStart(2, "0")}`, userId: "ops", shared: true }),
        );
        const held = serves.map((userId) => ({ ...NO_NEEDS, userId }));
        const order = matchQueue(queue, idle, held, ranked).sort((a, b) =>
          a.workerId < b.workerId ? -1 : 1,
        );
        const position = order.findIndex(({ jobId }) => jobId === mine.jobId) + 1;
        const whole = explainPending(mine, fleet, queueOf(...groups), ranked);
        expect(whole.queue_position).toBe(position);
        // If the queue is long, only the first jobs of each group are read.
        const cut = groups.map((each) => ({
          ...each,
          jobs: each.jobs.slice(0, read + 1),
          hasMore: each.jobs.length > read + 1,
        }));
        const known = explainPending(mine, fleet, queueOf(...cut), ranked).queue_position;
        if (known !== null) expect(known).toBe(position);
        if (cut.every(({ hasMore }) => !hasMore)) expect(known).not.toBeNull();
      },
    ),
  );
});
