/** Failures that set a worker to error. Each job goes to the only worker that polls. */

import { ApiClient } from "../../dev/api-client";
import { execute } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

let forge: Forge;

beforeAll(async () => {
  forge = await startForge();
});

afterAll(async () => {
  await forge?.stop();
});

async function fail(workers: TestWorker[], user = forge.user): Promise<void> {
  const more = { max_attempts: workers.length };
  const { job_id } = await user.submit("audit", { ...AUDIT, ...more });
  for (const worker of workers) await worker.fail(await worker.take(), { retryable: true });
  await untilEnded(user, job_id);
}

async function succeed(worker: TestWorker): Promise<void> {
  const { job_id } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  await untilEnded(forge.user, job_id);
}

test("when a job has failed on two workers, only counted strikes are taken back", async () => {
  const { key } = await forge.admin.post<{ key: string }>("/api/auth/api-keys", {
    scope: "worker",
  });
  const shared = new TestWorker(new ApiClient(forge.stack.apiUrl, key), "s-shared");
  await shared.register();
  const [good, bad] = [await forge.worker("s-good"), await forge.worker("s-bad")];
  const others = await Promise.all(["s-ann", "s-ben"].map((id) => createTenant(forge, id)));
  const status = async (): Promise<unknown> =>
    (await forge.admin.get<{ status: string }>(`/api/workers/${shared.id}`)).status;

  await fail([shared]);
  // The failures of this job give neither worker a strike:
  // - `shared` has already failed for this tenant. Consecutive failures for one tenant count once.
  // - `bad` is the second worker on which the job fails, so the job is the likely cause.
  await fail([shared, bad]);
  await succeed(good);
  for (const { user } of others) {
    expect(await status()).toBe("idle");
    await fail([shared], user);
  }
  expect(await status()).toBe("error");
  await forge.endTest();
});

/** Marks the worker dead, as if it had been silent. */
const DIES = "update workers set status = 'dead' where worker_id = $1";

test.each(["error", "dead"])(
  "a worker with status %s because of a job recovers once the job fails elsewhere, too",
  async (how) => {
    const [worker, good, bad] = [
      await forge.worker(`s-${how}`),
      await forge.worker(`s-fine-${how}`),
      await forge.worker(`s-second-${how}`),
    ];
    const status = async (): Promise<unknown> =>
      (await forge.admin.get<{ status: string }>(`/api/workers/${worker.id}`)).status;
    await fail([worker]);
    await fail([worker]);
    await succeed(good);
    const { job_id } = await forge.user.submit("audit", { ...AUDIT, max_attempts: 2 });
    await worker.fail(await worker.take(), { retryable: true });
    expect(await status()).toBe("error");
    if (how === "dead") await execute(forge.ctx.pool, DIES, [worker.id]);
    await bad.fail(await bad.take());
    await untilEnded(forge.user, job_id);
    await worker.heartbeat();
    expect(await status()).toBe("idle");
    // Only the strike for the job that also failed elsewhere was removed. The worker still has two
    // strikes, so one more failure sets the worker to error.
    await fail([worker]);
    expect(await status()).toBe("error");
    await forge.endTest();
  },
);
