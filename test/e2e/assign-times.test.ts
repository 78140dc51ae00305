/** The histogram of the times from a job's submission to its assignment. */

import { waitFor } from "../../dev/stack/wait";
import { execute } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { AUDIT, untilEnded, untilStatus } from "../support/jobs";
import { readMetrics, sampleOf } from "../support/metrics";

let forge: Forge;

beforeAll(async () => {
  // A worker can be assigned a job as soon as it has registered. If it does not poll within 4 s,
  // the job returns to the queue.
  forge = await startForge({ FORGE_OFFER_S: "30", FORGE_ASSIGNMENT_TIMEOUT_S: "4" });
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

const NAME = "forge_assign_wait_seconds";

async function readTimes(jobType: string) {
  const text = await readMetrics(forge.stack.apiUrl, forge.stack.keys.adminKey);
  const read = (of: string, labels: Record<string, string> = {}) => sampleOf(text, of, labels) ?? 0;
  return {
    count: read(`${NAME}_count`, { job_type: jobType }),
    totalS: read(`${NAME}_sum`, { job_type: jobType }),
    /** How many jobs were assigned within `le` seconds. */
    within: (le: number) => read(`${NAME}_bucket`, { le: String(le), job_type: jobType }),
    assignments: read("forge_attempts_assigned_total"),
  };
}

test("jobs count with the time that they waited for a worker", async () => {
  const WAITED_S = 100;
  const { job_id: late } = await forge.user.submit("audit", AUDIT);
  await execute(
    forge.ctx.pool,
    "update attempts set queued_at = queued_at - make_interval(secs => $2) where job_id = $1",
    [late, WAITED_S],
  );
  expect((await readTimes("audit")).count).toBe(0);
  const worker = await forge.worker("counted");
  await worker.complete(await worker.take());
  await untilEnded(forge.user, late);
  const first = await readTimes("audit");
  expect(first.count).toBe(1);
  expect(first.totalS).toBeGreaterThanOrEqual(WAITED_S);
  expect([first.within(60), first.within(600)]).toEqual([0, 1]);

  const { job_id: prompt } = await forge.user.submit("audit", AUDIT);
  await worker.complete(await worker.take());
  await untilEnded(forge.user, prompt);
  const both = await readTimes("audit");
  expect([both.within(10), both.count]).toEqual([1, 2]);
  expect(both.totalS - first.totalS).toBeGreaterThan(0);
  expect(both.totalS - first.totalS).toBeLessThan(10);
});

test("a job that comes back and is assigned again counts once", async () => {
  const before = await readTimes("generate");
  const { job_id: id } = await forge.user.submit("generate", { domain: "law", num_samples: 1 });
  await forge.worker("never-polls");
  await untilStatus(forge.user, id, ["assigned"]);
  await untilStatus(forge.user, id, ["pending"]);

  const restarts = await forge.worker("restarts");
  expect(await restarts.take()).toMatchObject({ job_id: id, attempt: 1 });
  await restarts.register(undefined, { boot_id: "another" });
  const again = await waitFor("its second attempt", () => restarts.next(1));
  expect(again).toMatchObject({ job_id: id, attempt: 2 });
  await restarts.complete(again);
  await untilEnded(forge.user, id);

  const after = await readTimes("generate");
  expect(after.assignments - before.assignments).toBe(3);
  expect(after.count - before.count).toBe(1);
  expect(after.totalS - before.totalS).toBeLessThan(10);
});
