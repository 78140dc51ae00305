import { ApiClient } from "../../dev/api-client";
import { execute } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded } from "../support/jobs";
import { createTenant } from "../support/tenants";
import { TestWorker } from "../support/test-worker";

/** Failures that bench a worker. Each job goes to the only worker that asks. */
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

test("of a job that failed on two workers only what counted is taken back", async () => {
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
  // The second one of a tenant does not count there, and turns out to be its own fault.
  await fail([shared, bad]);
  await succeed(good);
  for (const { user } of others) {
    expect(await status()).toBe("idle");
    await fail([shared], user);
  }
  expect(await status()).toBe("error");
  await forge.settle();
});

/** As if it had been silent. */
const DIES = "update workers set status = 'dead' where worker_id = $1";

test.each(["benched", "dead"])(
  "a worker that is %s for a job is well again once that fails elsewhere, too",
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
    // Two are left, of the three: it takes one more.
    await fail([worker]);
    expect(await status()).toBe("error");
    await forge.settle();
  },
);
