import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilStatus } from "../support/jobs";

/** Workers that are given a job without asking: right after they registered, and after a result. */
let forge: Forge;

beforeAll(async () => {
  forge = await startForge({ FORGE_OFFER_S: "30", FORGE_ASSIGNMENT_TIMEOUT_S: "1" });
});

afterEach(async () => {
  await forge.settle();
});

afterAll(async () => {
  await forge?.stop();
});

test("a worker that just registered, and one whose result was accepted, has the next job at once", async () => {
  const worker = await forge.worker("fresh");
  for (let n = 0; n < 2; n++) {
    const { job_id } = await forge.user.submit("audit", AUDIT);
    const assigned = await untilStatus(forge.user, job_id, ["assigned"]);
    expect(assigned).toMatchObject({ worker_id: "fresh", attempts: 0 });
    await worker.complete(await worker.take());
    await untilEnded(forge.user, job_id);
  }
});

test("what it does not fetch in time goes to another, uncounted, and it is given nothing more", async () => {
  await forge.worker("gone");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await untilStatus(forge.user, job_id, ["assigned"]);
  await untilStatus(forge.user, job_id, ["pending"]);
  const other = await forge.worker("there");
  const handed = await other.take();
  expect(handed).toMatchObject({ job_id, attempt: 1 });
  await other.complete(handed);
  await untilEnded(forge.user, job_id);
});

test("after a job that it lost it must ask", async () => {
  const worker = await forge.worker("slow", { name: "NVIDIA A100", memory_gb: 80 });
  const { job_id } = await forge.user.submit("audit", { ...AUDIT, timeout_s: 1 });
  await worker.take();
  await untilEnded(forge.user, job_id);
  // Only this worker can have the next one. Whoever is found for the one after it was found in a later look at both.
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

test("one that leaves after its result is offered nothing", async () => {
  const worker = await forge.worker("leaves");
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await untilStatus(forge.user, job_id, ["assigned"]);
  const job = await worker.take();
  expect((await worker.complete(job, { leaving: true })).status).toBe(200);
  // Told again by an agent that has thought better of it, it is the same result.
  expect((await worker.complete(job)).status).toBe(200);
  await untilEnded(forge.user, job_id);
  const next = await forge.user.submit("audit", AUDIT);
  const other = await forge.worker("stays");
  // The scheduler has looked at both.
  await untilStatus(forge.user, next.job_id, ["assigned"]);
  expect((await forge.user.job(next.job_id)).worker_id).toBe("stays");
  await other.complete(await other.take());
  await untilEnded(forge.user, next.job_id);
});
