/**
 * Workers that are assigned a job before they poll: right after registration, and after a result.
 */

import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilStatus } from "../support/jobs";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_OFFER_S: "30", FORGE_ASSIGNMENT_TIMEOUT_S: "4" });
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

test("a worker gets the next job at once after registration and after an accepted result", async () => {
  const worker = await forge.worker("fresh");
  for (let n = 0; n < 2; n++) {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const assigned = await untilStatus(forge.user, job_id, ["assigned"]);
    expect(assigned).toMatchObject({ worker_id: "fresh", attempts: 0 });
    await worker.complete(await worker.take());
    await untilEnded(forge.user, job_id);
  }
});

test("a job that it does not fetch in time goes to another without counting, and it gets no more", async () => {
  await forge.worker("gone");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await untilStatus(forge.user, job_id, ["assigned"]);
  await untilStatus(forge.user, job_id, ["pending"]);
  const other = await forge.worker("there");
  const dispatched = await other.take();
  expect(dispatched).toMatchObject({ job_id, attempt: 1 });
  await other.complete(dispatched);
  await untilEnded(forge.user, job_id);
});

test("after a lost job it must poll", async () => {
  const worker = await forge.worker("slow", { name: "NVIDIA A100", memory_gb: 80 });
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
  await worker.take();
  await untilEnded(forge.user, job_id);
  // The previous job of the worker "slow" timed out, so "slow" must not be assigned a job before it
  // polls. Only "slow" can run `next`. The scheduler's pass that assigns `after` also considers
  // `next`. So `next` must still be pending once `after` is assigned.
  const next = await forge.user.submit("audit", { ...AUDIT, resources: { gpu: 1 } });
  const other = await forge.worker("quick");
  const after = await forge.user.submit("audit", AUDIT);
  expect(await untilStatus(forge.user, after.job_id, ["assigned"])).toMatchObject({
    worker_id: "quick",
  });
  expect((await forge.user.job(next.job_id)).status).toBe("pending");
  await other.complete(await other.take());
  await worker.complete(await worker.take());
  await untilEnded(forge.user, after.job_id);
  await untilEnded(forge.user, next.job_id);
});

test("a worker that leaves after its result gets no job", async () => {
  const worker = await forge.worker("leaves");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await untilStatus(forge.user, job_id, ["assigned"]);
  const job = await worker.take();
  expect((await worker.complete(job, { leaving: true })).status).toBe(200);
  // Send the same result again, but without the field `leaving`. The worker must stay unavailable.
  expect((await worker.complete(job)).status).toBe(200);
  await untilEnded(forge.user, job_id);
  const next = await forge.user.submit("audit", AUDIT);
  const other = await forge.worker("stays");
  // Once the job is assigned, the scheduler has considered both workers.
  await untilStatus(forge.user, next.job_id, ["assigned"]);
  expect((await forge.user.job(next.job_id)).worker_id).toBe("stays");
  await other.complete(await other.take());
  await untilEnded(forge.user, next.job_id);
});
