/**
 * The Temporal worker is killed while its activity `awaitAttempt` reads the attempt, before the
 * activity can throw `CompleteAsyncError`. Temporal does not notice the kill: it regards the
 * activity as running until the activity's time-out of an hour. The attempt's outcome must still
 * complete the activity.
 */

import { waitFor } from "../../dev/stack/wait";
import { all } from "../../platform/postgres/pool";
import { type Forge, startForge } from "../support/forge";
import { isAwaited, untilDelivered } from "../support/job-workflow";
import { AUDIT, untilEnded } from "../support/jobs";
import { withLock } from "../support/locks";
import { oneFormOf } from "../support/slow";
import type { TestWorker } from "../support/test-worker";

let forge: Forge;
let worker: TestWorker;

/** The job must end within this time. It is far shorter than the activity's time-out of an hour. */
const SOON_MS = 20_000;

beforeAll(async () => {
  forge = await startForge({ FORGE_WORKFLOW_START_S: "0.2" }, { split: true });
  worker = await forge.worker("w");
});

afterEach(async () => {
  await forge.endTest();
});

afterAll(async () => {
  await forge?.stop();
});

/**
 * Finds the activity's statement that reads the attempt, while the statement waits for the test's
 * lock. Until the statement ends, the activity can't answer Temporal.
 */
const ITS_READ = `select from pg_stat_activity where datname = current_database()
  and wait_event_type = 'Lock' and query like '%as attempt_exists%'`;

/** Starts a job, and kills the Temporal workers in the middle of its activity. */
async function killedInActivity() {
  const temporalWorkers = forge.servers().filter(({ name }) => name.startsWith("temporal-worker"));
  // Freeze the Temporal workers until the test holds the lock. When they continue, the activity's
  // read of the attempt waits for the lock.
  for (const each of temporalWorkers) each.signal("SIGSTOP");
  const { job_id: id } = await forge.user.submit("audit", AUDIT);
  const job = await worker.take();
  await untilDelivered(forge, id);
  await withLock(forge, "lock table attempts in access exclusive mode", [], async () => {
    for (const each of temporalWorkers) each.signal("SIGCONT");
    await waitFor("the activity to be taken", () => isAwaited(forge, id));
    await waitFor("it to read the attempt", async () => {
      return (await all(forge.ctx.pool, ITS_READ)).length > 0;
    });
    for (const each of temporalWorkers) await each.kill();
  });
  return { id, job };
}

test.each(
  oneFormOf([
    ["after another one has started", true],
    ["while none runs", false],
  ]),
)(
  "a Temporal worker killed while it begins to wait for an attempt: a result that comes %s ends the job",
  async (_, isRestartedBefore) => {
    const { id, job } = await killedInActivity();
    const restart = () => forge.stack.startTemporalWorker();
    if (isRestartedBefore) await restart();
    // Temporal does not know yet that the worker was killed.
    expect(await isAwaited(forge, id)).toBe(true);
    expect((await worker.complete(job)).status).toBe(200);
    if (!isRestartedBefore) await restart();
    expect(await untilEnded(forge.user, id, SOON_MS)).toMatchObject({
      status: "completed",
      attempts: 1,
    });
  },
  60_000,
);
