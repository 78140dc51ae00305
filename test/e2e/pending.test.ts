/**
 * The reasons that waiting jobs show, and the effect of the operator's settings: FORGE_JOB_POLICY,
 * FORGE_TRAIN_NEEDS_GPU and FORGE_BILL_OUTCOMES.
 */

import type { ApiClient, Job } from "../../dev/api-client";
import { waitFor } from "../../dev/stack/wait";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { createTenant, type Tenant } from "../support/tenants";
import { type DispatchedJob, TestWorker } from "../support/test-worker";

let forge: Forge;
let other: Tenant;

beforeAll(async () => {
  forge = await startForge(
    {
      FORGE_TRAIN_NEEDS_GPU: "true",
      FORGE_BILL_OUTCOMES: "cancelled",
      FORGE_JOB_POLICY: JSON.stringify({
        evaluate: { timeout_s: 1 },
        distill: { gpu: 2, tags: ["fast"] },
      }),
    },
    { own: ["temporal"] },
  );
  other = await createTenant(forge, "other");
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

interface Reason {
  code: string;
  message: string;
  requirement: object | null;
  queue_position: number | null;
}

/** Waits until the job shows a reason with this code. The shown reason is up to a second old. */
const untilReason = (api: ApiClient, jobId: string, code: string): Promise<Reason> =>
  waitFor(`${jobId} to wait for ${code}`, async () => {
    const { pending_reason } = await api.get<{ pending_reason: Reason | null }>(
      `/api/jobs/${jobId}`,
    );
    return pending_reason?.code === code && pending_reason;
  });

const cancel = (api: ApiClient, jobId: string): Promise<Job> =>
  api.post<Job>(`/api/jobs/${jobId}/cancel`, {});

test("no worker is registered, then none fits: the nearest requirement is named, in lists too", async () => {
  const body = { dataset_id: "d", model: "m", resources: { gpu: 4 } };
  const { job_id } = await forge.user.submit("train", body);
  await untilReason(forge.user, job_id, "no_worker");
  await (await forge.worker("two", { name: "A100", memory_gb: 80 })).register(
    { name: "A100", memory_gb: 80 },
    { gpu: { name: "A100", memory_gb: 80, count: 2 } },
  );
  expect(await untilReason(forge.user, job_id, "no_worker_fits")).toEqual({
    code: "no_worker_fits",
    message: "needs 4 GPUs; the nearest worker has 2",
    requirement: { name: "gpu", needed: 4, available: 2 },
    queue_position: null,
  });
  const { jobs } = await forge.user.get<{ jobs: { pending_reason: Reason | null }[] }>(
    "/api/jobs?status=pending",
  );
  expect(jobs.map((job) => job.pending_reason?.code)).toEqual(["no_worker_fits"]);
  await cancel(forge.user, job_id);
});

test("the operator's policy is a floor under what jobs ask for", async () => {
  const { job_id } = await forge.user.submit("distill", { dataset_id: "d", teacher: "t" });
  expect(await untilReason(forge.user, job_id, "no_worker_fits")).toMatchObject({
    requirement: { name: "tags", needed: "fast", available: null },
  });
  const fast = await forge.worker("fast");
  await fast.register(undefined, {
    gpu: { name: "A100", memory_gb: 80, count: 2 },
    tags: ["fast"],
  });
  const job = await fast.take();
  expect(job.job_id).toBe(job_id);
  await fast.complete(job);
  await untilEnded(forge.user, job_id);
});

test("all workers are busy: the place in the queue, by priority, then age", async () => {
  const tagged = { resources: { tags: ["only"] } };
  const worker = await forge.worker("only");
  await worker.register(undefined, { tags: ["only"] });
  const running = await forge.user.submit("audit", { ...AUDIT, ...tagged });
  const held = await worker.take();
  const first = await forge.user.submit("audit", { ...AUDIT, ...tagged });
  const second = await forge.user.submit("audit", { ...AUDIT, ...tagged });
  const urgent = await forge.user.submit("audit", { ...AUDIT, ...tagged, priority: 10 });
  const places = [
    [first, 2],
    [second, 3],
    [urgent, 1],
  ] as const;
  for (const [{ job_id }, place] of places) {
    await waitFor(`${job_id} to be number ${place}`, async () => {
      const reason = await untilReason(forge.user, job_id, "workers_busy");
      return reason.queue_position === place;
    });
  }
  await worker.complete(held);
  const order: string[] = [];
  for (let n = 0; n < 3; n++) {
    const job = await worker.take();
    order.push(job.job_id);
    await worker.complete(job);
  }
  expect(order).toEqual([urgent.job_id, first.job_id, second.job_id]);
  for (const { job_id } of [running, first, second, urgent]) await untilEnded(forge.user, job_id);
});

test("if more requirement groups wait than are read, a job has no place in the queue", async () => {
  const worker = await forge.worker("one");
  await worker.register(undefined, { tags: ["one"] });
  const submit = async (tag: string, api = forge.user): Promise<string> =>
    (await api.submit("audit", { ...AUDIT, resources: { tags: [tag] } })).job_id;
  await submit("one");
  const held = await worker.take();
  const waiting = await submit("one");
  expect(await untilReason(forge.user, waiting, "workers_busy")).toMatchObject({
    queue_position: 1,
  });
  const others: [ApiClient, string][] = [];
  for (const api of [forge.user, other.user]) {
    const tags = Array.from({ length: 100 }, (_, n) => `other-${n}`);
    for (const id of await Promise.all(tags.map((tag) => submit(tag, api)))) others.push([api, id]);
  }
  await waitFor("the place to be unknown", async () => {
    const reason = await untilReason(forge.user, waiting, "workers_busy");
    return reason.queue_position === null && /the queue is long$/.test(reason.message);
  });
  for (const [api, id] of others) await cancel(api, id);
  await cancel(forge.user, waiting);
  await worker.complete(held);
});

test("a tenant over its share waits for tenants with fewer workers, and the reason shows it", async () => {
  const shared = { resources: { tags: ["pool"] } };
  const workers = await Promise.all(
    [1, 2, 3].map(async (n) => {
      const worker = new TestWorker(forge.admin, `pool-${n}`);
      await worker.register(undefined, { tags: ["pool"] });
      return worker;
    }),
  );
  const submit = async (api: ApiClient): Promise<string> =>
    (await api.submit("audit", { ...AUDIT, ...shared })).job_id;
  const first = [await submit(forge.user), await submit(forge.user), await submit(other.user)];
  const held = new Map<TestWorker, DispatchedJob>();
  for (const worker of workers) held.set(worker, await worker.take());
  const mine = await submit(forge.user);
  const theirs = await submit(other.user);
  const reason = await untilReason(forge.user, mine, "over_share");
  expect(reason).toMatchObject({ queue_position: 2 });
  expect(reason.message).toMatch(
    /tenants that hold fewer shared workers than yours \(2\) go first/,
  );
  expect(JSON.stringify(reason)).not.toMatch(/pool-|other/);
  const [free, job] = [...held].find(([, each]) => each.job_id === first[0]) ?? [];
  if (!free || !job) throw new Error("no worker has the first job");
  await free.complete(job);
  held.delete(free);
  // Both tenants now hold one worker each. So neither tenant has priority, and the scheduler
  // assigns the older waiting job: `mine`.
  const next = await free.take();
  expect(next.job_id).toBe(mine);
  await free.complete(next);
  const last = await free.take();
  expect(last.job_id).toBe(theirs);
  await free.complete(last);
  for (const [worker, each] of held) await worker.complete(each);
  for (const id of [...first, mine, theirs]) await untilEnded(forge.admin, id);
});

test("between two attempts, while Temporal is unavailable", async () => {
  const worker = await forge.worker("between");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  forge.own("temporal").signal("SIGSTOP");
  // The registration with another boot_id ends the attempt as lost. Only the workflow can queue the
  // next attempt, and Temporal is stopped.
  await worker.register(undefined, { boot_id: "another" });
  expect(await untilReason(forge.user, job_id, "between_attempts")).toMatchObject({
    message: "attempt 1 has ended; the next one is about to be queued",
  });
  forge.own("temporal").signal("SIGCONT");
  expect(await worker.take()).toMatchObject({ job_id, attempt: 2 });
  await worker.complete({ ...job, attempt: 2 } as DispatchedJob);
  await untilEnded(forge.user, job_id);
});

test("an attempt ends after its type's time, and its worker is free", async () => {
  const worker = await forge.worker("patient");
  worker.startHeartbeats();
  const { job_id } = await forge.user.submit("evaluate", { checkpoint_id: "c" });
  const job = await worker.take();
  expect(job.job_id).toBe(job_id);
  expect(await untilEnded(forge.user, job_id)).toMatchObject({
    status: "failed",
    error_code: "timeout",
    error: "attempt 1 exceeded its time-out of 1 s",
  });
  expect((await worker.heartbeat({ job_id })).commands).toEqual([{ type: "job_lost", job_id }]);
  expect((await worker.heartbeat({ job_id, attempt: 1 })).commands).toEqual([
    { type: "job_lost", job_id, attempt: 1 },
  ]);
  expect((await worker.complete(job)).status).toBe(409);
  expect(await forge.user.get("/api/workers/patient")).toMatchObject({ status: "idle" });
  worker.stopHeartbeats();
});

test("a cancelled job's usage is billed if the operator configured it", async () => {
  const worker = await forge.worker("metered");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  await cancel(forge.user, job_id);
  await worker.fail(job, { metrics: { rows_processed: 5_000 } });
  await untilEnded(forge.user, job_id);
  const record = await waitFor("the bill", async () => {
    const answer = await forge.user.call<object>("GET", `/api/billing/records/${job_id}`);
    return answer.status === 200 && answer.body;
  });
  expect(record).toMatchObject({ total_cost_usd: 1, state: "final" });
  const untouched = await forge.user.submit("audit", AUDIT);
  await cancel(forge.user, untouched.job_id);
  await forge.endTest();
  expect((await forge.user.call("GET", `/api/billing/records/${untouched.job_id}`)).status).toBe(
    404,
  );
});
