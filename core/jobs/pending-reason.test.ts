import fc from "fast-check";
import { matchQueue } from "../fleet/matching";
import {
  explainPending,
  type FleetMember,
  type QueuedGroup,
  type WaitingJob,
} from "./pending-reason";

const NEEDS = {
  jobType: "audit" as const,
  gpuCount: 0,
  gpuTokens: [],
  memoryGb: 0,
  tags: [],
  avoid: [] as string[],
};
const job: WaitingJob = { ...NEEDS, jobId: "job_5", userId: "ann", priority: 0, queuedAt: 5 };

const worker = (more: Partial<FleetMember> = {}): FleetMember => ({
  ...NEEDS,
  workerId: "w",
  userId: "ann",
  shared: false,
  jobTypes: null,
  tenants: null,
  gpuName: "cpu",
  status: "busy",
  statusReason: null,
  draining: false,
  asks: false,
  serves: null,
  ...more,
});

const shape = (userId: string, at: number[], more: Partial<QueuedGroup> = {}): QueuedGroup => ({
  ...NEEDS,
  userId,
  jobs: at.map((queuedAt) => ({ jobId: `job_${queuedAt}`, priority: 0, queuedAt })),
  hasMore: false,
  ...more,
});

test("without any worker, or with another tenant's only", () => {
  expect(explainPending(job, [], [])).toMatchObject({ code: "no_worker" });
  const foreign = [worker({ userId: "bob", status: "idle", asks: true })];
  expect(explainPending(job, foreign, [])).toMatchObject({ code: "no_worker" });
});

test("a deployment waits for a worker that does not serve it yet", () => {
  const again = { ...job, avoid: ["w"] };
  expect(explainPending(again, [worker()], [])).toMatchObject({
    code: "no_worker_fits",
    requirement: { name: "worker", available: null },
  });
  expect(explainPending(again, [worker(), worker({ workerId: "v" })], [])).toMatchObject({
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
  "with workers that lack %s, the nearest unmet requirement",
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
    expect(explainPending({ ...job, ...needs }, fleet, [])).toEqual({
      code: "no_worker_fits",
      message,
      requirement: { name, needed, available },
      queue_position: null,
    });
  },
);

test("with workers that fit and are out of service, what is the matter with them", () => {
  const dead = worker({ workerId: "box", status: "dead", statusReason: "no heartbeat for 30 s" });
  expect(explainPending(job, [dead], [])).toMatchObject({
    code: "no_worker_available",
    message: "workers that fit are not in service: box is dead (no heartbeat for 30 s)",
  });
  const shared = worker({
    workerId: "x",
    userId: "ops",
    shared: true,
    status: "idle",
    draining: true,
  });
  expect(explainPending(job, [shared], []).message).toMatch(/: a shared worker is draining$/);
});

test("with a worker that is being set up", () => {
  const coming = worker({ workerId: "box", status: "bootstrapping" });
  expect(explainPending(job, [coming], [])).toMatchObject({ code: "provisioning" });
  // Another that fits is there, so that one is waited for.
  expect(explainPending(job, [coming, worker()], [])).toMatchObject({ code: "workers_busy" });
});

test("with an idle worker that asks, it is a matter of moments", () => {
  const idle = worker({ status: "idle", asks: true });
  expect(explainPending(job, [idle], [])).toMatchObject({ code: "scheduling" });
});

test("with workers that are idle and do not ask, that nobody asks", () => {
  expect(explainPending(job, [worker({ workerId: "box", status: "idle" })], [])).toMatchObject({
    code: "no_worker_available",
    message: "idle, but not asking for work: box",
  });
});

test("with busy workers, its place among those that want one of them", () => {
  const queue = [
    shape("ann", [3, 4, 5, 6]),
    shape("bob", [1, 2]),
    shape("ann", [0], { gpuCount: 8 }),
  ];
  expect(explainPending(job, [worker()], queue)).toEqual({
    code: "workers_busy",
    message: "the worker that fits is busy; number 3 in the queue",
    requirement: null,
    queue_position: 3,
  });
});

test("behind more of its kind than were looked at, it has no number", () => {
  const queue = [shape("ann", [1, 2, 3], { hasMore: true })];
  expect(explainPending(job, [worker()], queue)).toMatchObject({
    code: "workers_busy",
    queue_position: null,
  });
});

test("of a tenant that holds more than others, why later jobs go first", () => {
  const pool = ["a", "b", "c"].map((workerId, n) =>
    worker({ workerId, userId: "ops", shared: true, serves: n < 2 ? "ann" : "bob" }),
  );
  const queue = [shape("ann", [5]), shape("bob", [6, 7, 8])];
  expect(explainPending(job, pool, queue)).toMatchObject({
    code: "over_share",
    message: expect.stringMatching(
      /^all 3 workers that fit are busy; .* than yours \(2\) go first$/,
    ),
    queue_position: 2,
  });
});

/** The place is what the matcher does with workers that turn idle one after the other. */
test("the place in the queue is the turn in which the matcher serves it", () => {
  const tenants = ["ann", "bob", "cyd"];
  const queues = fc
    .array(fc.record({ userId: fc.constantFrom(...tenants), priority: fc.constantFrom(0, 0, 1) }), {
      minLength: 1,
      maxLength: 15,
    })
    .map((jobs) =>
      jobs.map((each, n): WaitingJob => {
        return { ...NEEDS, ...each, jobId: `job_${String(n).padStart(2, "0")}`, queuedAt: n };
      }),
    );
  const busy = fc.array(fc.constantFrom(...tenants), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(queues, busy, fc.nat(), (queue, serves, pick) => {
      const mine = queue[pick % queue.length];
      if (!mine) return;
      const fleet = serves.map((tenant, n) =>
        worker({ workerId: `w${n}`, userId: "ops", shared: true, serves: tenant }),
      );
      const shapes = tenants.map((userId) => ({
        ...shape(userId, []),
        jobs: queue
          .filter((each) => each.userId === userId)
          .sort((a, b) => b.priority - a.priority || a.queuedAt - b.queuedAt),
      }));
      // As many as wait turn idle at once, beside those that stay busy.
      const idle = queue.map((_, n) =>
        worker({ workerId: `idle_${String(n).padStart(2, "0")}`, userId: "ops", shared: true }),
      );
      const held = serves.map((userId) => ({ ...NEEDS, userId }));
      const order = matchQueue(queue, idle, held).sort((a, b) =>
        a.workerId < b.workerId ? -1 : 1,
      );
      const turn = order.findIndex(({ jobId }) => jobId === mine.jobId) + 1;
      expect(explainPending(mine, fleet, shapes).queue_position).toBe(turn);
    }),
  );
});
